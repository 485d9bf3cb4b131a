#include "broker/strategy/weighted_round_robin.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {

namespace {

// Up to here a double tells steps of the largest weight apart.
constexpr double kTimeMax = 1e6;
// Multiples of it, modulo 1, are as far apart as can be.
constexpr double kGoldenRatio = 0.6180339887498949;

// Children of a place in the heap: half the depth of two. All have so many or none.
constexpr std::size_t kArity = 4;

}  // namespace

const Endpoint* WeightedRoundRobinStrategy::select(std::span<const Endpoint* const> endpoints,
                                                   const Selection& selection) {
  if (!fits(endpoints)) rebuild(endpoints);
  if (time_ > kTimeMax) restart_time();
  Turn& first = turns_.front();
  Member& member = members_[first.member];
  time_ = first.due;
  const double part =
      options_.slow_start > Duration::zero() ? warmth(member.since, selection.now, options_.slow_start) : 1.0;
  first.due = member.due = time_ + member.step / part;
  const Endpoint* chosen = member.endpoint;
  sink_first();
  return chosen;
}

bool WeightedRoundRobinStrategy::fits(std::span<const Endpoint* const> endpoints) const {
  if (!is_current_ || members_.size() != endpoints.size()) return false;
  const std::uint32_t next = turns_.front().member;
  return members_[next].endpoint == endpoints[next];
}

void WeightedRoundRobinStrategy::rebuild(std::span<const Endpoint* const> endpoints) {
  const auto by_address = [](const Member& a, const Member& b) {
    return std::less<>()(a.endpoint, b.endpoint);
  };
  former_.swap(members_);
  std::sort(former_.begin(), former_.end(), by_address);
  members_.clear();
  turns_.clear();
  double phase = random_.uniform();
  for (const Endpoint* endpoint : endpoints) {
    const double weight = weight_of(*endpoint->node, options_.weight_key);
    Member member{endpoint, weight > 0 ? 1 / weight : 1, -1, endpoint->node->since};
    const auto known = std::lower_bound(former_.begin(), former_.end(), member, by_address);
    if (weight == 0) {
      // It takes no part.
    } else if (known != former_.end() && known->endpoint == endpoint && known->due >= 0) {
      // It waits for the same part of its step as before, whatever its weight is now.
      member.due = (known->due - time_) / known->step * member.step;
    } else {
      phase -= std::floor(phase);
      member.due = phase * member.step;
      phase += kGoldenRatio;
    }
    members_.push_back(member);
  }
  const bool all_drained =
      std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.due < 0; });
  for (std::uint32_t i = 0; i < members_.size(); ++i) {
    if (all_drained) members_[i].due = random_.uniform();
    if (members_[i].due >= 0) turns_.push_back({members_[i].due, i});
  }
  std::sort(turns_.begin(), turns_.end(), [](const Turn& a, const Turn& b) { return a.due < b.due; });
  while (turns_.size() % kArity != 1) turns_.push_back({std::numeric_limits<double>::infinity(), 0});
  time_ = 0;
  is_current_ = true;
}

void WeightedRoundRobinStrategy::sink_first() {
  const Turn turn = turns_.front();
  std::size_t at = 0;
  for (std::size_t child = 1; child < turns_.size(); child = kArity * at + 1) {
    // The earliest of four in two rounds, by numbers: branches would be foretold wrongly half of the time.
    const Turn* of = &turns_[child];
    const auto left = static_cast<std::size_t>(of[1].due < of[0].due);
    const auto right = 2 + static_cast<std::size_t>(of[3].due < of[2].due);
    const std::size_t earliest =
        left + (right - left) * static_cast<std::size_t>(of[right].due < of[left].due);
    if (turn.due <= of[earliest].due) break;
    turns_[at] = of[earliest];
    at = child + earliest;
  }
  turns_[at] = turn;
}

void WeightedRoundRobinStrategy::restart_time() {
  for (Member& member : members_) {
    if (member.due >= 0) member.due -= time_;
  }
  for (Turn& turn : turns_) turn.due -= time_;
  time_ = 0;
}

Result<std::unique_ptr<Strategy>> make_weighted_round_robin(const StrategyContext& context) {
  OptionReader reader("WeightedRoundRobin", context.options);
  WeightOptions options = read_weight_options(reader);
  if (auto read = reader.finish(); !read) return read.error();
  return std::make_unique<WeightedRoundRobinStrategy>(std::move(options), context.random);
}

}  // namespace weft
