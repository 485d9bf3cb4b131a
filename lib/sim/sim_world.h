#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "lib/base/buffer.h"
#include "lib/base/function_ref.h"
#include "lib/base/unique_function.h"
#include "lib/random/random.h"
#include "lib/sim/sim_event_queue.h"

namespace weft {

class SimFabric;

// A world of its own: one seed, one clock that jumps from event to event, many processes.
//
// Same program and same seed: same events in the same order, and the same trace hash. Processes (SimRuntime)
// live on hosts; hosts, wires and their faults are the fabric's. What a test does between calls to run_…()
// happens at the world's present time.
//
// Ownership: outlives every process in it. Thread: one, for everything.
class SimWorld {
 public:
  using Callback = SimEventQueue::Callback;
  using EventId = SimEventQueue::EventId;

  explicit SimWorld(std::uint64_t seed);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] Instant now() const { return queue_.now(); }
  // Time since the world began.
  [[nodiscard]] Duration elapsed() const { return now() - kStart; }
  [[nodiscard]] SimFabric& fabric() { return *fabric_; }
  // For the test's own dice: faults and workloads drawn from the seed.
  [[nodiscard]] Random& random() { return random_; }
  // The next of a row of seeds, one for each process.
  [[nodiscard]] std::uint64_t draw_seed() { return seeds_.next(); }
  [[nodiscard]] std::uint64_t draw_process_number() { return ++processes_; }

  // Runs the next event due within `limit`; false if there is none.
  bool step(Instant limit = kNever);
  void run_for(Duration span);
  // Until `done()`, asked after each event, or until `limit` is over; gives the last answer.
  bool run_until(FunctionRef<bool()> done, Duration limit);

  // The test's own script: `callback` belongs to no process.
  EventId after(Duration delay, Callback callback) {
    return queue_.add(now() + delay, script_, std::move(callback));
  }
  void cancel(EventId event) { queue_.cancel(event); }

  // Everything that happened, as one number. Equal for equal runs, and different for nearly all others.
  [[nodiscard]] std::uint64_t trace_hash() const { return hash_; }
  [[nodiscard]] std::uint64_t events_run() const { return events_run_; }
  // Adds a line to the trace: it counts in the hash, and is shown if someone listens.
  void note(std::string_view who, std::string_view what) {
    mix(who);
    mix(what);
    show(who, what);
  }
  // Shown only.
  void show(std::string_view who, std::string_view what);
  // Shows the trace: "12.003417 n1 …" with seconds since the start. Costs time; for replaying a failure.
  void set_trace(UniqueFunction<void(std::string_view line)> sink) { trace_ = std::move(sink); }
  [[nodiscard]] bool is_traced() const { return static_cast<bool>(trace_); }

  // The rest is for loops and wires.

  // The process whose turn it is; null between turns.
  [[nodiscard]] SimLoop* current() const { return current_; }
  [[nodiscard]] SimEventQueue& queue() { return queue_; }
  // Makes `bytes` part of the hash.
  void mix(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x9e3779b97f4a7c15ULL;
    hash_ ^= hash_ >> 32;
  }
  void mix(BytesView bytes);
  // One turn of a loop, or a piece of the world's own work when `loop` is null.
  void run_turn(SimLoop* loop, std::uint64_t order, Callback& callback);

 private:
  // Not zero: a forgotten Instant{} must not look like the present.
  static constexpr Instant kStart{std::chrono::seconds(1000)};

  std::uint64_t seed_;
  SimEventQueue queue_{kStart};
  SimEventQueue::Owner script_;
  SeededRandom random_;
  SeededRandom seeds_;
  std::uint64_t hash_;
  std::uint64_t events_run_ = 0;
  std::uint64_t processes_ = 0;
  SimLoop* current_ = nullptr;
  UniqueFunction<void(std::string_view)> trace_;
  std::unique_ptr<SimFabric> fabric_;
};

}  // namespace weft
