#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "broker/guards/policies.h"
#include "lib/base/assert.h"

namespace weft {

// Keeps the runs of one handler apart from the rest of the node: so many at once, so many wait, in order of
// their coming, and the rest is refused. Those who have waited beyond their deadline are dropped: nobody
// wants their result any more.
//
// Pure. Allocates only where it queues.
template <typename Item>
class Bulkhead {
 public:
  enum class Admission : unsigned char { kRun, kQueued, kFull };

  explicit Bulkhead(const BulkheadPolicy& policy) : policy_(policy) {}

  // kRun: it runs now, and leave() follows once. kQueued: `item` was taken. kFull: it is refused.
  [[nodiscard]] Admission enter(Item& item, Instant deadline) {
    if (running_ < policy_.concurrency) {
      ++running_;
      return Admission::kRun;
    }
    if (waiting_.size() >= policy_.queue_max) return Admission::kFull;
    waiting_.push_back({std::move(item), deadline});
    return Admission::kQueued;
  }

  // The next of those who waited, and whether it has waited too long. One that is `expired` is dropped by
  // whoever gets it, and leave() asked again.
  struct Next {
    Item item;
    bool expired;
  };
  // A run has ended: gives the one that has its turn, or nothing.
  [[nodiscard]] std::optional<Next> leave(Instant now) {
    WEFT_ASSERT(running_ > 0);
    if (waiting_.empty()) {
      --running_;
      return std::nullopt;
    }
    Next next{std::move(waiting_.front().item), waiting_.front().deadline <= now};
    waiting_.pop_front();
    return next;
  }
  // Makes room where entries have waited too long: gives one of them, until there is none. For a queue that
  // is full.
  [[nodiscard]] std::optional<Item> take_expired(Instant now) {
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      if (it->deadline > now) continue;
      Item expired = std::move(it->item);
      waiting_.erase(it);
      return expired;
    }
    return std::nullopt;
  }

  void clear() {
    waiting_.clear();
    running_ = 0;
  }

  [[nodiscard]] bool is_full() const {
    return running_ >= policy_.concurrency && waiting_.size() >= policy_.queue_max;
  }
  [[nodiscard]] std::size_t running() const { return running_; }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] const BulkheadPolicy& policy() const { return policy_; }

 private:
  struct Waiting {
    Item item;
    Instant deadline;
  };

  BulkheadPolicy policy_;
  std::size_t running_ = 0;
  std::deque<Waiting> waiting_;
};

}  // namespace weft
