#include "broker/dispatch/idempotency_table.h"

#include <utility>

#include "lib/protocol/serializer.h"

namespace weft {

namespace {

constexpr std::size_t kKeyBytesMax = 256;

// A copy that stands alone, and how large it is.
Payload kept(const Payload& payload, std::size_t& bytes) {
  if (payload.is_absent()) return {};
  auto value = payload.to_value();
  if (!value) return {};
  bytes += to_json(*value).size();
  return Payload(*std::move(value));
}

}  // namespace

std::string IdempotencyTable::key_of(std::string_view action, const Payload& headers) const {
  if (headers.is_empty_object() || policy_.ttl <= Duration::zero()) return {};
  const auto value = headers.to_value();
  if (!value) return {};
  const std::string_view given = std::as_const(*value)[kHeader].str_or({});
  if (given.empty() || given.size() > kKeyBytesMax) return {};
  std::string key(action);
  key += '\n';
  key += given;
  return key;
}

void IdempotencyTable::drop_oldest() {
  const auto oldest = entries_.find(ended_.front());
  bytes_ -= oldest->second.bytes;
  entries_.erase(oldest);
  ended_.pop_front();
}

IdempotencyTable::Turn IdempotencyTable::begin(const std::string& key, Instant now, Waiter waiter) {
  while (!ended_.empty() && entries_.at(ended_.front()).expires <= now) drop_oldest();
  if (const auto known = entries_.find(key); known != entries_.end()) {
    if (!known->second.answer) {
      known->second.waiters.push_back(std::move(waiter));
      return Turn::kWait;
    }
    const Answer answer = *known->second.answer;  // The waiter may change the table.
    waiter(answer);
    return Turn::kAnswered;
  }
  if (entries_.size() >= policy_.entries_max && !ended_.empty()) drop_oldest();
  // With nothing but calls under way in it, the table does not grow: this one is not recognised again.
  if (entries_.size() < policy_.entries_max) entries_.emplace(key, Entry());
  return Turn::kRun;
}

void IdempotencyTable::finish(const std::string& key, const Answer& answer, Instant now) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.answer) return;
  std::vector<Waiter> waiters = std::move(found->second.waiters);
  if (!answer.result && answer.result.error().retryable()) {
    entries_.erase(found);
  } else {
    Entry& entry = found->second;
    entry.bytes = key.size();
    Answer kept_answer;
    if (answer.result) {
      kept_answer.result = kept(*answer.result, entry.bytes);
    } else {
      kept_answer.result = answer.result.error();
      entry.bytes += answer.result.error().message().size() + to_json(answer.result.error().data()).size();
    }
    kept_answer.meta = kept(answer.meta, entry.bytes);
    kept_answer.headers = kept(answer.headers, entry.bytes);
    entry.answer = std::move(kept_answer);
    entry.expires = now + policy_.ttl;
    bytes_ += entry.bytes;
    ended_.push_back(key);
    while (bytes_ > policy_.bytes_max) drop_oldest();
  }
  for (Waiter& waiter : waiters) waiter(answer);
}

}  // namespace weft
