#include "lib/sim/sim_event_queue.h"

#include <algorithm>
#include <utility>

#include "lib/base/assert.h"

namespace weft {

SimEventQueue::EventId SimEventQueue::add(Instant when, Owner& owner, Callback callback) {
  const Slot slot = make();
  Event& event = at(slot);
  event.callback = std::move(callback);
  event.owner = &owner;
  event.order = ++order_;
  event.before = kNone;
  event.after = owner.first;
  if (owner.first != kNone) at(owner.first).before = slot;
  owner.first = slot;
  ++live_;
  if (when <= now_) {
    event.place = kDueNow;
    due_.push_back(slot);
  } else {
    const Entry entry{when, event.order, slot};
    heap_.push_back(entry);
    sift_up(heap_.size() - 1, entry);
  }
  return (static_cast<EventId>(event.generation) << 32) | slot;
}

void SimEventQueue::cancel(EventId id) {
  const auto slot = static_cast<Slot>(id & UINT32_MAX);
  if (id == 0 || slot / kChunk >= chunks_.size()) return;
  if (at(slot).generation != static_cast<std::uint32_t>(id >> 32)) return;
  const Callback gone = drop(slot);  // Destroyed last: it may reach back here.
}

void SimEventQueue::cancel_all(Owner& owner) {
  while (owner.first != kNone) {
    const Callback gone = drop(owner.first);
  }
}

SimEventQueue::Slot SimEventQueue::pop(Instant limit) {
  // What the heap holds for this very time is older than all that is queued as due now.
  if (heap_.empty() || heap_.front().when > now_) {
    while (due_head_ < due_.size()) {
      const Slot slot = due_[due_head_++];
      if (due_head_ == due_.size()) {
        due_.clear();
        due_head_ = 0;
      }
      if (at(slot).place == kCancelled) {
        free(slot);
        continue;
      }
      at(slot).place = kPopped;
      return slot;
    }
    if (heap_.empty() || heap_.front().when > limit) return kNone;
    now_ = heap_.front().when;
  }
  const Slot slot = heap_.front().slot;
  remove_from_heap(0);
  at(slot).place = kPopped;
  return slot;
}

SimEventQueue::Callback SimEventQueue::take(Slot slot) {
  Event& event = at(slot);
  if (event.place == kCancelled) {
    free(slot);
    return {};
  }
  WEFT_ASSERT(event.place == kPopped || event.place == kParked);
  unlink(slot);
  --live_;
  Callback callback = std::move(event.callback);
  free(slot);
  return callback;
}

SimEventQueue::Slot SimEventQueue::make() {
  if (free_ == kNone) {
    const auto base = static_cast<Slot>(chunks_.size() * kChunk);
    chunks_.push_back(std::make_unique<Event[]>(kChunk));
    for (std::size_t i = kChunk; i-- > 0;) {
      chunks_.back()[i].after = free_;
      free_ = base + static_cast<Slot>(i);
    }
  }
  const Slot slot = free_;
  free_ = at(slot).after;
  return slot;
}

void SimEventQueue::free(Slot slot) {
  Event& event = at(slot);
  event.place = kFree;
  if (++event.generation == 0) event.generation = 1;
  event.after = free_;
  free_ = slot;
}

void SimEventQueue::unlink(Slot slot) {
  Event& event = at(slot);
  if (event.before != kNone) {
    at(event.before).after = event.after;
  } else {
    event.owner->first = event.after;
  }
  if (event.after != kNone) at(event.after).before = event.before;
}

// Ends a waiting event without running it.
SimEventQueue::Callback SimEventQueue::drop(Slot slot) {
  Event& event = at(slot);
  if (event.place == kFree || event.place == kCancelled) return {};
  unlink(slot);
  --live_;
  Callback callback = std::move(event.callback);
  if (event.place < kCancelled) {
    remove_from_heap(event.place);
    free(slot);
  } else {
    event.place = kCancelled;
  }
  return callback;
}

void SimEventQueue::put(std::size_t index, const Entry& entry) {
  heap_[index] = entry;
  at(entry.slot).place = static_cast<std::uint32_t>(index);
}

void SimEventQueue::sift_up(std::size_t index, Entry entry) {
  while (index > 0) {
    const std::size_t parent = (index - 1) / 4;
    if (!entry.before(heap_[parent])) break;
    put(index, heap_[parent]);
    index = parent;
  }
  put(index, entry);
}

void SimEventQueue::sift_down(std::size_t index, Entry entry) {
  for (;;) {
    const std::size_t first = index * 4 + 1;
    if (first >= heap_.size()) break;
    std::size_t least = first;
    const std::size_t end = std::min(first + 4, heap_.size());
    for (std::size_t child = first + 1; child < end; ++child) {
      if (heap_[child].before(heap_[least])) least = child;
    }
    if (!heap_[least].before(entry)) break;
    put(index, heap_[least]);
    index = least;
  }
  put(index, entry);
}

void SimEventQueue::remove_from_heap(std::size_t index) {
  const Entry last = heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) return;
  if (index > 0 && last.before(heap_[(index - 1) / 4])) {
    sift_up(index, last);
  } else {
    sift_down(index, last);
  }
}

}  // namespace weft
