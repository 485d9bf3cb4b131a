#include "lib/sim/sim_world.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "lib/base/assert.h"
#include "lib/sim/sim_fabric.h"
#include "lib/sim/sim_loop.h"

namespace weft {

SimWorld::SimWorld(std::uint64_t seed)
    : seed_(seed),
      random_(seed ^ 0x7365656473ULL),
      seeds_(seed ^ 0x70726f63ULL),
      hash_(seed),
      fabric_(std::make_unique<SimFabric>(*this)) {}

SimWorld::~SimWorld() {
  queue_.cancel_all(script_);
}

bool SimWorld::step(Instant limit) {
  const SimEventQueue::Slot slot = queue_.pop(limit);
  if (slot == SimEventQueue::kNone) return false;
  SimLoop* loop = queue_.loop_of(slot);
  if (loop != nullptr && !loop->can_run()) {
    loop->park(slot);
    return true;
  }
  const std::uint64_t order = queue_.order_of(slot);
  Callback callback = queue_.take(slot);
  run_turn(loop, order, callback);
  return true;
}

void SimWorld::run_turn(SimLoop* loop, std::uint64_t order, Callback& callback) {
  mix(static_cast<std::uint64_t>(now().time_since_epoch().count()));
  mix(order);
  ++events_run_;
  SimLoop* before = std::exchange(current_, loop);
  WEFT_ASSERT(before == nullptr || loop == nullptr);  // A turn never runs inside another one.
  callback();
  callback.reset();  // What it held goes while its process is still the current one.
  if (loop != nullptr) loop->end_turn();
  current_ = before;
}

void SimWorld::run_for(Duration span) {
  const Instant end = now() + span;
  while (step(end)) {
  }
  queue_.advance(end);
}

bool SimWorld::run_until(FunctionRef<bool()> done, Duration limit) {
  const Instant end = now() + limit;
  while (!done()) {
    if (step(end)) continue;
    queue_.advance(end);
    return done();
  }
  return true;
}

void SimWorld::show(std::string_view who, std::string_view what) {
  if (!trace_) return;
  char time[32];
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(elapsed()).count();
  std::snprintf(time, sizeof(time), "%lld.%06lld ", static_cast<long long>(us / 1000000),
                static_cast<long long>(us % 1000000));
  std::string line(time);
  line.append(who).append(" ").append(what);
  trace_(line);
}

void SimWorld::mix(BytesView bytes) {
  const auto word_at = [&bytes](std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    return word;
  };
  std::size_t at = 0;
  if (bytes.size() >= 32) {  // Four rows at once: one row of multiplications would wait for each of its own.
    std::uint64_t rows[4] = {1, 2, 3, 4};
    for (; at + 32 <= bytes.size(); at += 32) {
      for (std::size_t row = 0; row < 4; ++row) {
        rows[row] = (std::rotl(rows[row], 29) ^ word_at(at + row * 8)) * 0x9e3779b97f4a7c15ULL;
      }
    }
    for (const std::uint64_t row : rows) mix(row);
  }
  for (; at + 8 <= bytes.size(); at += 8) mix(word_at(at));
  std::uint64_t rest = bytes.size();
  for (; at < bytes.size(); ++at) rest = (rest << 8) | static_cast<unsigned char>(bytes[at]);
  mix(rest);
}

}  // namespace weft
