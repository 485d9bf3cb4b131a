#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "broker/call.h"
#include "broker/call_options.h"
#include "broker/params.h"
#include "lib/base/log.h"
#include "lib/protocol/payload.h"
#include "lib/time/clock.h"
#include "lib/value/value.h"

namespace weft {

class Broker;
class Service;

enum class EventType : std::uint8_t { kEmit, kBroadcast, kBroadcastLocal };

// What a handler knows of the call or event it serves, and its way to call on.
//
// Ownership: lives as long as the handler runs. A plain handler must not keep it; a coroutine may use it
// until it returns. Thread: the loop's; of a blocking handler: its worker, which may read everything and
// call_blocking.
class Context {
 public:
  Context(Broker& broker, const Service* service) : broker_(&broker), service_(service) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // What the caller sent. Typed handlers get it decoded as their second parameter.
  Payload params;

  // Travels down to nested calls and comes back up with their responses. Decoded at the first use.
  [[nodiscard]] Value& meta();
  [[nodiscard]] const Value& meta() const;
  // Of this call alone.
  [[nodiscard]] const Value& headers() const { return headers_.value(); }
  // Sent back with the response.
  [[nodiscard]] Value& response_headers() { return response_headers_; }
  // Private to this context.
  [[nodiscard]] Value& locals() { return locals_; }

  [[nodiscard]] std::string_view id();          // Unique; the correlation key on the wire.
  [[nodiscard]] std::string_view request_id();  // The same in every nested call on every node.
  [[nodiscard]] std::string_view parent_id() const { return parent_id_; }
  [[nodiscard]] std::string_view caller() const {
    return caller_;
  }  // Full name of the calling service, or empty.
  [[nodiscard]] std::string_view node_id() const { return node_id_; }  // The node that called or emitted.
  [[nodiscard]] int level() const { return level_; }                   // 1 for a root call, parent + 1 below.
  [[nodiscard]] std::optional<bool> tracing() const { return tracing_; }
  // The action that is called, or the event that came.
  [[nodiscard]] std::string_view action() const { return action_; }
  [[nodiscard]] std::string_view event() const { return event_; }
  [[nodiscard]] EventType event_type() const { return event_type_; }
  [[nodiscard]] std::vector<std::string> event_groups() const;

  // When the caller stops waiting; kNever without a timeout.
  [[nodiscard]] Instant deadline() const { return deadline_; }
  // Time left for nested calls; nothing without a timeout.
  [[nodiscard]] std::optional<Duration> remaining() const;

  // Fires when nobody waits for the result any more: the caller's time is over, its node is gone, or this
  // node stops and has waited long enough. A handler that runs for long looks at it now and then. Callbacks
  // of it run on the loop's thread.
  [[nodiscard]] std::stop_token stop_token();
  [[nodiscard]] bool stop_requested() const { return stopped_ || stop_.stop_requested(); }

  [[nodiscard]] Broker& broker() { return *broker_; }
  [[nodiscard]] const Service* service() const { return service_; }
  [[nodiscard]] const Logger& log() const;

  // Calls on behalf of this context: meta, request id, level, caller and the remaining time are passed on,
  // and the callee's meta is merged back.
  template <typename T = Value>
  [[nodiscard]] Call<T> call(std::string_view action, Params sent = {}, const CallOptions& options = {}) {
    return Call<T>(start_call(action, std::move(sent), options), this, options);
  }
  template <typename T = Value>
  [[nodiscard]] TryCall<T> try_call(std::string_view action, Params sent = {},
                                    const CallOptions& options = {}) {
    return TryCall<T>(start_call(action, std::move(sent), options), this, options);
  }
  // By a constant that knows its types; params of a wrong type do not compile.
  template <typename P, typename R>
  [[nodiscard]] Call<R> call(const Action<P, R>& action, const std::type_identity_t<P>& sent,
                             const CallOptions& options = {}) {
    return Call<R>(start_call(action.name, Params(sent), options), this, options);
  }
  template <typename P, typename R>
  requires(!kSafeTemporary<P>) Call<R> call(const Action<P, R>& action, std::type_identity_t<P>&& sent,
                                            const CallOptions& options = {})
  = delete;
  // Many calls at once; see Broker::mcall.
  [[nodiscard]] MultiCall mcall(Calls calls);

  void emit(std::string_view event, Params payload = {}, const EventOptions& options = {});
  void broadcast(std::string_view event, Params payload = {}, const EventOptions& options = {});

 private:
  friend class ContextAccess;  // The engines fill it in.
  [[nodiscard]] CallRef start_call(std::string_view action, Params&& sent, const CallOptions& options);
  // Makes everything borrowed independent of the packet it came in.
  void retain();

  Broker* broker_;
  const Service* service_;
  mutable Payload meta_source_;
  mutable std::optional<Value> meta_;
  Payload headers_;
  Value response_headers_;
  Value locals_;

  // Views into the packet, or into storage_ once retained.
  std::string_view id_;
  std::string_view request_id_;
  std::string_view parent_id_;
  std::string_view caller_;
  std::string_view node_id_;
  std::string_view action_;
  std::string_view event_;
  std::string storage_;
  std::string made_id_;  // When this context had to make its own.
  Payload event_groups_;
  EventType event_type_ = EventType::kEmit;
  int level_ = 1;
  std::optional<bool> tracing_;
  Instant deadline_ = kNever;
  std::stop_source stop_{std::nostopstate};  // Made when somebody asks.
  bool stopped_ = false;                     // It was requested before anybody asked.
};

}  // namespace weft
