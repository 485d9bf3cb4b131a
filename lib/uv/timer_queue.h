#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/loop/event_loop.h"

namespace weft {

// Timers in order of time, ties in order of creation: an indexed heap, so that cancelling is as cheap as
// adding and leaves nothing behind.
//
// Knows no clock: it is asked what is due.
class TimerQueue {
 public:
  using Callback = EventLoop::Callback;
  using TimerId = EventLoop::TimerId;

  TimerId add(Instant when, Callback callback);
  // The callback of the timer, so that the caller destroys it when nothing is half done; empty when unknown.
  [[nodiscard]] Callback cancel(TimerId timer);

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] Instant next() const { return heap_.empty() ? kNever : slots_[heap_[0]].when; }

  // Runs what is due at `now`. Timers added meanwhile wait for the next call, even if they are due.
  void run_due(Instant now);
  // Forgets all timers and gives back their callbacks.
  [[nodiscard]] std::vector<Callback> take_all();

 private:
  static constexpr std::size_t kNoPlace = SIZE_MAX;

  struct Slot {
    Instant when{};
    std::uint64_t order = 0;       // Of creation.
    std::uint32_t generation = 1;  // Tells a TimerId of an earlier use from the present one.
    std::size_t place = kNoPlace;  // In heap_; none while free or about to run.
    Callback callback;
  };

  [[nodiscard]] TimerId id_of(std::size_t slot) const {
    return (static_cast<TimerId>(slots_[slot].generation) << 32) | slot;
  }
  [[nodiscard]] Slot* find(TimerId timer);
  [[nodiscard]] bool before(std::size_t a, std::size_t b) const;
  void remove_from_heap(std::size_t place);
  void sift_up(std::size_t place);
  void sift_down(std::size_t place);
  void put(std::size_t place, std::size_t slot);
  Callback release(std::size_t slot);

  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
  std::vector<std::size_t> heap_;  // Slots, earliest first.
  std::vector<TimerId> due_;       // Scratch of run_due().
  std::uint64_t order_ = 0;
};

}  // namespace weft
