#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

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
  const Value* meta = nullptr;        // Laid over the meta of the calling context.
  const Value* headers = nullptr;     // For this call alone.
  std::string_view request_id;        // Default: the calling context's, else the call's own id.
  std::string_view caller;            // Default: the calling service.
  const Value* fallback = nullptr;    // The result when the call fails, whatever the reason.
  bool tracking = true;               // stop() waits for it.
  Value* response_meta = nullptr;     // Gets the callee's meta.
  Value* response_headers = nullptr;  // Gets the headers of the response.
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
