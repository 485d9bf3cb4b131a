#include "broker/guards/outlier_ejection.h"

#include <algorithm>

namespace weft {

namespace {

std::size_t ejected(OutlierEjection::Records all) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const OutlierRecord* one) { return one->ejected; }));
}

}  // namespace

std::size_t OutlierEjection::ejections_max(std::size_t records) const {
  return static_cast<std::size_t>(static_cast<double>(records) * policy_.max_ejection_percent / 100);
}

bool OutlierEjection::is_outlier(const OutlierRecord& one) const {
  if (policy_.consecutive_failures > 0 && one.consecutive >= policy_.consecutive_failures) return true;
  return policy_.min_request_count > 0 && one.window.calls() >= policy_.min_request_count &&
         one.window.failure_rate() >= policy_.failure_rate;
}

void OutlierEjection::forgive(OutlierRecord& one, Instant now) const {
  while (one.times > 0 && now - one.forgiven_from >= policy_.window) {
    --one.times;
    one.forgiven_from += policy_.window;
  }
}

bool OutlierEjection::report(Records all, OutlierRecord& one, bool failed, Instant now) const {
  if (one.ejected) return false;  // Late word of calls from before.
  one.window.add(failed, now);
  one.consecutive = failed ? one.consecutive + 1 : 0;
  if (!failed || !is_outlier(one) || ejected(all) >= ejections_max(all.size())) return false;
  forgive(one, now);
  ++one.times;
  const Duration longest = policy_.ejection_time_max;
  const bool is_longest = one.times > longest / policy_.ejection_time;
  one.until = now + (is_longest ? longest : policy_.ejection_time * one.times);
  one.ejected = true;
  return true;
}

void OutlierEjection::end_ejection(OutlierRecord& one, Instant now) const {
  one.ejected = false;
  one.consecutive = 0;
  one.window.clear();
  one.forgiven_from = now;
}

bool OutlierEjection::tick(Records all, Instant now) const {
  bool ended = false;
  for (OutlierRecord* one : all) {
    if (!one->ejected || one->until > now) continue;
    end_ejection(*one, now);
    ended = true;
  }
  return ended;
}

bool OutlierEjection::enforce(Records all) const {
  bool ended = false;
  while (ejected(all) > ejections_max(all.size())) {
    OutlierRecord* next = nullptr;
    for (OutlierRecord* one : all) {
      if (one->ejected && (next == nullptr || one->until < next->until)) next = one;
    }
    end_ejection(*next, next->until);  // It is not forgiven sooner for that.
    ended = true;
  }
  return ended;
}

Instant OutlierEjection::next_tick(Records all) {
  Instant next = kNever;
  for (const OutlierRecord* one : all) {
    if (one->ejected) next = std::min(next, one->until);
  }
  return next;
}

}  // namespace weft
