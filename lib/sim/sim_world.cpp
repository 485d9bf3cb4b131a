#include "lib/sim/sim_world.h"

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
  std::uint64_t word = 0;
  std::size_t at = 0;
  for (; at + sizeof(word) <= bytes.size(); at += sizeof(word)) {
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    mix(word);
  }
  word = bytes.size() - at;
  for (; at < bytes.size(); ++at) word = (word << 8) | static_cast<unsigned char>(bytes[at]);
  mix(word);
}

}  // namespace weft
