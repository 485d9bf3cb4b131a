#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "broker/guards/policies.h"
#include "lib/base/unique_function.h"
#include "lib/error/result.h"
#include "lib/protocol/payload.h"

namespace weft {

// Remembers the results of keyed calls to this node, so that a repetition gets the first result instead of a
// run of its own, even while the first one is under way. Failures that may be tried again are not remembered:
// the next call with the key runs.
//
// Results are kept for a set time, and the oldest go first when there are too many or they are too large.
// Pure; time is passed in.
class IdempotencyTable {
 public:
  static constexpr std::string_view kHeader = "$idempotencyKey";

  struct Answer {
    Result<Payload> result = Payload();
    Payload meta;
    Payload headers;
  };
  using Waiter = UniqueFunction<void(const Answer&)>;
  enum class Turn : unsigned char { kRun, kWait, kAnswered };

  explicit IdempotencyTable(const IdempotencyPolicy& policy) : policy_(policy) {}

  // The table's key of a call: empty if `headers` bring none (or a senseless one), or keys are switched off.
  [[nodiscard]] std::string key_of(std::string_view action, const Payload& headers) const;

  // kRun: it runs, and finish() follows. kWait: `waiter` is called when the first one has ended. kAnswered:
  // it was called.
  Turn begin(const std::string& key, Instant now, Waiter waiter);
  // The run of `key` has ended: answers those who wait, and remembers.
  void finish(const std::string& key, const Answer& answer, Instant now);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::optional<Answer> answer;  // Once it has ended.
    std::vector<Waiter> waiters;
    std::size_t bytes = 0;
    Instant expires{};
  };
  void drop_oldest();

  IdempotencyPolicy policy_;
  std::unordered_map<std::string, Entry> entries_;
  std::deque<std::string> ended_;  // Keys of those that have ended, oldest first.
  std::size_t bytes_ = 0;
};

}  // namespace weft
