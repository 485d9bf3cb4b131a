#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/loop/event_loop.h"

namespace weft {

class SimLoop;

// What is to happen in a simulated world: by time, and at one time by order of creation.
//
// A heap for the future and a plain queue for what is due now; cancelling takes an event out at once, so
// timers that are set and cancelled for every call leave nothing behind. It also keeps the world's time.
class SimEventQueue {
 public:
  using Callback = EventLoop::Callback;
  using EventId = std::uint64_t;  // 0 is none.
  using Slot = std::uint32_t;     // Where an event lies while it waits.
  static constexpr Slot kNone = UINT32_MAX;

  // Those who have events: a loop, or the world itself (a null loop). Remembers them, so that they end with
  // it.
  struct Owner {
    SimLoop* loop = nullptr;
    Slot first = kNone;
  };

  explicit SimEventQueue(Instant start) : now_(start) {}

  [[nodiscard]] Instant now() const { return now_; }
  // How many events wait, parked ones included.
  [[nodiscard]] std::size_t size() const { return live_; }

  // `callback` at `when`, or at once if that has passed. The owner outlives the event or calls cancel_all().
  EventId add(Instant when, Owner& owner, Callback callback);
  void cancel(EventId event);
  void cancel_all(Owner& owner);

  // The next event that is due no later than `limit`, advancing time to it; kNone if there is none. The
  // caller must take() or park it.
  Slot pop(Instant limit);
  [[nodiscard]] SimLoop* loop_of(Slot slot) const { return at(slot).owner->loop; }
  // A number that tells this event from all others.
  [[nodiscard]] std::uint64_t order_of(Slot slot) const { return at(slot).order; }
  // Ends a popped or parked event and hands out what it was to do; empty if it was cancelled meanwhile.
  Callback take(Slot slot);
  // Keeps a popped event for later; its id stays good for cancel().
  void park(Slot slot) { at(slot).place = kParked; }
  // Nothing is due after now: moves time on to `when`.
  void advance(Instant when) {
    if (when > now_) now_ = when;
  }

 private:
  // Values of Event::place that are no index into the heap.
  static constexpr std::uint32_t kFree = UINT32_MAX;
  static constexpr std::uint32_t kDueNow = UINT32_MAX - 1;
  static constexpr std::uint32_t kPopped = UINT32_MAX - 2;
  static constexpr std::uint32_t kParked = UINT32_MAX - 3;
  static constexpr std::uint32_t kCancelled = UINT32_MAX - 4;  // Still in some queue, which frees it.
  static constexpr std::size_t kChunk = 1024;

  struct Event {
    Callback callback;
    Owner* owner = nullptr;
    std::uint64_t order = 0;
    std::uint32_t generation = 1;
    std::uint32_t place = kFree;
    Slot before = kNone;  // Neighbours among the owner's events; `after` also links free slots.
    Slot after = kNone;
  };
  struct Entry {
    Instant when;
    std::uint64_t order;
    Slot slot;
    [[nodiscard]] bool before(const Entry& other) const {
      return when != other.when ? when < other.when : order < other.order;
    }
  };

  [[nodiscard]] Event& at(Slot slot) { return chunks_[slot / kChunk][slot % kChunk]; }
  [[nodiscard]] const Event& at(Slot slot) const { return chunks_[slot / kChunk][slot % kChunk]; }
  Slot make();
  void free(Slot slot);
  void unlink(Slot slot);
  Callback drop(Slot slot);
  void put(std::size_t index, const Entry& entry);
  void sift_up(std::size_t index, Entry entry);
  void sift_down(std::size_t index, Entry entry);
  void remove_from_heap(std::size_t index);

  Instant now_;
  std::vector<std::unique_ptr<Event[]>> chunks_;
  Slot free_ = kNone;
  std::size_t live_ = 0;
  std::uint64_t order_ = 0;
  std::vector<Entry> heap_;  // Four children each: shallower, and siblings share cache lines.
  std::vector<Slot> due_;    // Due now, in order; from due_head_ on.
  std::size_t due_head_ = 0;
};

}  // namespace weft
