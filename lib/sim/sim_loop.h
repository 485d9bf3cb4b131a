#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "lib/loop/event_loop.h"
#include "lib/sim/sim_event_queue.h"

namespace weft {

class SimHost;
class SimWorld;

// The loop of one simulated process. Each event of the process is a turn of its own.
//
// Called from outside any turn (by the test), it acts as if it were inside one, and what was deferred runs at
// the same virtual time.
class SimLoop final : public EventLoop {
 public:
  // `clock_rate`: seconds of this process's monotonic clock for each second of the world; its timers follow.
  SimLoop(SimWorld& world, SimHost& host, double clock_rate = 1.0);
  ~SimLoop() override;
  SimLoop(const SimLoop&) = delete;
  SimLoop& operator=(const SimLoop&) = delete;

  [[nodiscard]] Instant now() const override;
  [[nodiscard]] std::int64_t wall_ms() const override;
  TimerId schedule(Instant when, Callback callback) override;
  void cancel(TimerId timer) override;
  void post(Callback callback) override;
  void defer(Callback callback) override;
  [[nodiscard]] bool is_current() const override;
  // Work takes no virtual time of the loop; `done` comes set_blocking_time() later.
  void run_blocking(Callback work, Callback done) override;

  [[nodiscard]] SimWorld& world() { return world_; }
  [[nodiscard]] SimHost& host() { return host_; }

  // As a process under SIGSTOP: its events queue up and run, in order, after thaw(). Its kernel lives on.
  void freeze();
  void thaw();
  [[nodiscard]] bool is_frozen() const { return frozen_; }
  // Every turn costs this much: a slow node. 0 is the default.
  void set_turn_cost(Duration cost) { turn_cost_ = cost; }
  // Inside a turn: as if the code had computed for this long. Later turns wait.
  void spend(Duration busy);
  void set_blocking_time(Duration time) { blocking_time_ = time; }

  // The process is dead: what waited is destroyed, and nothing will run any more.
  void kill();
  [[nodiscard]] bool is_dead() const { return dead_; }
  // Whether a timer or anything else of this process is still to come.
  [[nodiscard]] bool has_events() const { return owner_.first != SimEventQueue::kNone; }

  // The rest is for the world and the wires.

  [[nodiscard]] bool can_run() const;
  void park(SimEventQueue::Slot slot);
  void end_turn();
  // An event of this process, in the world's time.
  SimEventQueue::EventId add(Instant when, Callback callback);
  // Something the system does with what a turn has queued; at the turn's end, or at once between turns.
  void at_end_of_turn(Callback flush);

 private:
  void wake_at(Instant when);
  void run_parked();

  SimWorld& world_;
  SimHost& host_;
  double clock_rate_;
  SimEventQueue::Owner owner_;
  SimEventQueue::Owner kernel_;  // Its wake-up, which no freeze holds back.
  std::vector<Callback> deferred_;
  std::vector<Callback> flushes_;
  std::deque<SimEventQueue::Slot> parked_;
  bool wake_set_ = false;
  bool frozen_ = false;
  bool dead_ = false;
  bool deferred_posted_ = false;
  Duration turn_cost_{};
  Duration blocking_time_{};
  Instant busy_until_{};
};

}  // namespace weft
