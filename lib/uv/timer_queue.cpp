#include "lib/uv/timer_queue.h"

#include <utility>

namespace weft {

TimerQueue::TimerId TimerQueue::add(Instant when, Callback callback) {
  std::size_t slot;
  if (free_.empty()) {
    slot = slots_.size();
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[slot].when = when;
  slots_[slot].order = ++order_;
  slots_[slot].callback = std::move(callback);
  heap_.push_back(slot);
  slots_[slot].place = heap_.size() - 1;
  sift_up(heap_.size() - 1);
  return id_of(slot);
}

TimerQueue::Callback TimerQueue::cancel(TimerId timer) {
  Slot* slot = find(timer);
  if (slot == nullptr) return {};
  if (slot->place != kNoPlace) remove_from_heap(slot->place);
  return release(static_cast<std::size_t>(slot - slots_.data()));
}

void TimerQueue::run_due(Instant now) {
  std::vector<TimerId> due = std::exchange(due_, {});
  while (!heap_.empty() && slots_[heap_[0]].when <= now) {
    due.push_back(id_of(heap_[0]));
    remove_from_heap(0);
  }
  for (const TimerId timer : due) {
    // One of those before may have cancelled it.
    if (find(timer) == nullptr) continue;
    Callback callback = release(static_cast<std::uint32_t>(timer));
    callback();
  }
  due.clear();
  due_ = std::move(due);
}

std::vector<TimerQueue::Callback> TimerQueue::take_all() {
  std::vector<Callback> callbacks;
  while (!heap_.empty()) {
    const std::size_t slot = heap_[0];
    remove_from_heap(0);
    callbacks.push_back(release(slot));
  }
  return callbacks;
}

TimerQueue::Slot* TimerQueue::find(TimerId timer) {
  const std::size_t index = static_cast<std::uint32_t>(timer);
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.generation == timer >> 32 ? &slot : nullptr;
}

bool TimerQueue::before(std::size_t a, std::size_t b) const {
  const Slot& left = slots_[a];
  const Slot& right = slots_[b];
  return left.when != right.when ? left.when < right.when : left.order < right.order;
}

void TimerQueue::put(std::size_t place, std::size_t slot) {
  heap_[place] = slot;
  slots_[slot].place = place;
}

void TimerQueue::remove_from_heap(std::size_t place) {
  slots_[heap_[place]].place = kNoPlace;
  const std::size_t last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  put(place, last);
  sift_up(place);
  sift_down(slots_[last].place);
}

void TimerQueue::sift_up(std::size_t place) {
  const std::size_t slot = heap_[place];
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (!before(slot, heap_[parent])) break;
    put(place, heap_[parent]);
    place = parent;
  }
  put(place, slot);
}

void TimerQueue::sift_down(std::size_t place) {
  const std::size_t slot = heap_[place];
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], slot)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, slot);
}

TimerQueue::Callback TimerQueue::release(std::size_t slot) {
  // A slot whose generations are used up is never given out again: an old id must not name a new timer.
  if (++slots_[slot].generation != 0) free_.push_back(slot);
  return std::exchange(slots_[slot].callback, Callback());
}

}  // namespace weft
