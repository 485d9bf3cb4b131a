#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "lib/error/error.h"
#include "lib/time/clock.h"
#include "lib/value/value.h"

namespace weft {

// Options of one call. Everything borrowed is copied when the call is made; `response_*` are written when the
// call's result is taken, and must live until then.
//
// Trivially destructible on purpose: designated initialisers survive co_await in g++ 12 only then.
struct CallOptions {
  std::optional<Duration> timeout;  // 0: none. Goes before the action's and the broker's.
  std::optional<int> retries;  // Further tries of a retryable failure; 0: none. Goes before the retry policy.
  std::string_view node;       // Call exactly this node.
  // Make the same call of another endpoint when this one has not answered after so long, and take the first
  // answer. For actions that may run twice. By `hedge_quantile` (0.95, say) the pause is what that share of
  // the action's calls takes, once some have been made; given both, it is the longer one.
  std::optional<Duration> hedge_after;
  double hedge_quantile = 0;
  // Names this call: the node that has served it once answers a repetition with the first result instead of
  // running it again.
  std::string_view idempotency_key;
  const Value* meta = nullptr;      // Laid over the meta of the calling context.
  const Value* headers = nullptr;   // For this call alone.
  std::string_view request_id;      // Default: the calling context's, else the call's own id.
  std::string_view caller;          // Default: the calling service.
  const Value* fallback = nullptr;  // The result when the call fails, whatever the reason.
  // The same, made from the failure. Does not run when there is `fallback`.
  const std::function<Value(const Error&)>* fallback_function = nullptr;
  bool tracking = true;                  // stop() waits for it.
  Value* response_meta = nullptr;        // Gets the callee's meta.
  Value* response_headers = nullptr;     // Gets the headers of the response.
  std::string* response_node = nullptr;  // Gets the id of the node that answered or failed.
};
static_assert(std::is_trivially_destructible_v<CallOptions>);

// Options of emit and broadcast.
struct EventOptions {
  std::span<const std::string_view> groups;  // Only these groups; empty: all.
  const Value* meta = nullptr;
  const Value* headers = nullptr;
  std::string_view request_id;
  std::string_view caller;
};
static_assert(std::is_trivially_destructible_v<EventOptions>);

}  // namespace weft
