#include "lib/sim/sim_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/assert.h"
#include "lib/sim/sim_fabric.h"
#include "lib/sim/sim_world.h"

namespace weft {

SimLoop::SimLoop(SimWorld& world, SimHost& host, double clock_rate)
    : world_(world), host_(host), clock_rate_(clock_rate) {
  WEFT_ASSERT(clock_rate > 0);
  owner_.loop = this;
}

SimLoop::~SimLoop() {
  WEFT_ASSERT(world_.current() != this);  // A process is not taken away under its own feet.
  kill();
  while (!parked_.empty()) {
    world_.queue().take(parked_.front());
    parked_.pop_front();
  }
}

Instant SimLoop::now() const {
  if (clock_rate_ == 1.0) return world_.now();
  const auto ns = static_cast<double>(world_.now().time_since_epoch().count()) * clock_rate_;
  return Instant(Duration(static_cast<Duration::rep>(ns + 0.5)));
}

std::int64_t SimLoop::wall_ms() const {
  return host_.wall_ms();
}

EventLoop::TimerId SimLoop::schedule(Instant when, Callback callback) {
  if (clock_rate_ != 1.0 && when != kNever) {
    const double ns = std::ceil(static_cast<double>(when.time_since_epoch().count()) / clock_rate_);
    when = ns < 9e18 ? Instant(Duration(static_cast<Duration::rep>(ns))) : kNever;
  }
  return add(when, std::move(callback));
}

void SimLoop::cancel(TimerId timer) {
  world_.queue().cancel(timer);
}

void SimLoop::post(Callback callback) {
  add(world_.now(), std::move(callback));
}

void SimLoop::defer(Callback callback) {
  WEFT_ASSERT(is_current());
  if (dead_) return;
  deferred_.push_back(std::move(callback));
  if (world_.current() == nullptr && !std::exchange(deferred_posted_, true)) {
    post([this] { deferred_posted_ = false; });  // An empty turn, for the sake of its end.
  }
}

bool SimLoop::is_current() const {
  return world_.current() == this || world_.current() == nullptr;
}

void SimLoop::run_blocking(Callback work, Callback done) {
  post([this, work = std::move(work), done = std::move(done)]() mutable {
    work();
    add(world_.now() + blocking_time_, std::move(done));
  });
}

SimEventQueue::EventId SimLoop::add(Instant when, Callback callback) {
  if (dead_) return 0;
  return world_.queue().add(when, owner_, std::move(callback));
}

void SimLoop::at_end_of_turn(Callback flush) {
  if (world_.current() == this) {
    flushes_.push_back(std::move(flush));
  } else {
    // Between turns there is no end to wait for; the next moment is as good.
    world_.queue().add(world_.now(), kernel_, std::move(flush));
  }
}

void SimLoop::end_turn() {
  while (!deferred_.empty()) {
    std::vector<Callback> batch;
    batch.swap(deferred_);
    for (Callback& callback : batch) {
      if (!dead_) callback();
    }
    batch.clear();
    if (deferred_.empty()) deferred_.swap(batch);  // Keeps the memory.
  }
  for (std::size_t i = 0; i < flushes_.size(); ++i) {
    Callback flush = std::move(flushes_[i]);
    flush();
  }
  flushes_.clear();
  if (turn_cost_ > Duration::zero()) spend(turn_cost_);
}

void SimLoop::spend(Duration busy) {
  busy_until_ = std::max(busy_until_, world_.now()) + busy;
}

bool SimLoop::can_run() const {
  return !frozen_ && parked_.empty() && busy_until_ <= world_.now();
}

void SimLoop::park(SimEventQueue::Slot slot) {
  world_.queue().park(slot);
  parked_.push_back(slot);
  if (!frozen_) wake_at(busy_until_);
}

void SimLoop::wake_at(Instant when) {
  if (std::exchange(wake_set_, true)) return;
  world_.queue().add(when, kernel_, [this] {
    wake_set_ = false;
    run_parked();
  });
}

// One turn for each wake-up, so that other processes have theirs in between.
void SimLoop::run_parked() {
  if (frozen_ || dead_) return;
  if (busy_until_ > world_.now()) return wake_at(busy_until_);
  while (!parked_.empty()) {
    const SimEventQueue::Slot slot = parked_.front();
    const std::uint64_t order = world_.queue().order_of(slot);
    Callback callback = world_.queue().take(slot);
    parked_.pop_front();
    if (!callback) continue;
    world_.run_turn(this, order, callback);
    break;
  }
  if (!parked_.empty()) wake_at(busy_until_);
}

void SimLoop::freeze() {
  frozen_ = true;
}

void SimLoop::thaw() {
  if (!std::exchange(frozen_, false)) return;
  if (!parked_.empty()) wake_at(world_.now());
}

void SimLoop::kill() {
  dead_ = true;
  world_.queue().cancel_all(owner_);
  world_.queue().cancel_all(kernel_);
  if (world_.current() == this) return;  // The turn that died ends first.
  const std::vector<Callback> deferred = std::move(deferred_);
  const std::vector<Callback> flushes = std::move(flushes_);
  deferred_.clear();
  flushes_.clear();
}

}  // namespace weft
