#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/call.h"
#include "broker/call_options.h"
#include "broker/context.h"
#include "broker/discovery/pong.h"
#include "broker/guards/outcome.h"
#include "broker/names.h"
#include "broker/options.h"
#include "broker/params.h"
#include "broker/service.h"
#include "lib/base/unique_function.h"
#include "lib/error/result.h"
#include "lib/loop/task.h"
#include "lib/runtime/runtime.h"
#include "lib/transport/transporter.h"

namespace weft {

class BrokerCore;
class LocalBus;

// A listener to local events; destroying it ends the subscription.
class [[nodiscard]] LocalListener {
 public:
  LocalListener() = default;
  LocalListener(std::weak_ptr<LocalBus> bus, std::uint64_t id) : bus_(std::move(bus)), id_(id) {}
  LocalListener(LocalListener&& other) noexcept
      : bus_(std::move(other.bus_)), id_(std::exchange(other.id_, 0)) {}
  LocalListener& operator=(LocalListener&& other) noexcept;
  ~LocalListener();

 private:
  std::weak_ptr<LocalBus> bus_;
  std::uint64_t id_ = 0;
};

// One node of the mesh: its services, its replica of everyone's catalogue, and the way to call.
//
// Ownership: owns its services and its transporter; borrows the runtime, which outlives it. stop() it before
// it is destroyed: destroying a running broker drops what is under way without goodbye. Thread: everything on
// the loop's thread, except what is marked "any thread".
class Broker {
 public:
  // Throws BrokerOptionsError for options that cannot work. Without a transporter the broker is a mesh of its
  // own.
  Broker(const Runtime& runtime, BrokerOptions options, std::unique_ptr<Transporter> transporter = nullptr);
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  // Connects, starts all services together, and announces them. Throws the error of a service that fails to
  // start, after everything that was started has been stopped again.
  Task<void> start();
  // Leaves gracefully: peers are told, running work ends (see TrackingOptions), hooks run, the goodbye is
  // said. Then no handler of this node runs any more, and no call is under way. Never throws; asked again, it
  // waits for the same end.
  Task<void> stop();
  [[nodiscard]] bool started() const;

  // Adds a service; once the broker has started, it starts at once, in the background. Throws
  // ServiceSchemaError for one that is wrong or whose name is taken.
  Service& add_service(std::shared_ptr<Service> service);
  template <typename S, typename... Args>
  S& add(Args&&... args) {
    auto service = std::make_shared<S>(std::forward<Args>(args)...);
    S& added = *service;
    add_service(std::move(service));
    return added;
  }
  // Stops and removes a service of this node, here and for everyone. Throws ServiceNotFoundError for an
  // unknown one.
  Task<void> destroy_service(std::string full_name);
  [[nodiscard]] Service* local_service(std::string_view full_name) const;

  // Calls an action by name, wherever it is. The call is under way at once; co_await it for its result.
  template <typename T = Value>
  [[nodiscard]] Call<T> call(std::string_view action, Params params = {}, const CallOptions& options = {}) {
    return Call<T>(start_call(action, std::move(params), options, nullptr), nullptr, options);
  }
  // The twin without exceptions.
  template <typename T = Value>
  [[nodiscard]] TryCall<T> try_call(std::string_view action, Params params = {},
                                    const CallOptions& options = {}) {
    return TryCall<T>(start_call(action, std::move(params), options, nullptr), nullptr, options);
  }
  template <typename P, typename R>
  [[nodiscard]] Call<R> call(const Action<P, R>& action, const std::type_identity_t<P>& params,
                             const CallOptions& options = {}) {
    return Call<R>(start_call(action.name, Params(params), options, nullptr), nullptr, options);
  }
  template <typename P, typename R>
  requires(!kSafeTemporary<P>) Call<R> call(const Action<P, R>& action, std::type_identity_t<P>&& params,
                                            const CallOptions& options = {})
  = delete;

  // Several calls at once: `co_await` gives the results in order or throws the first error.
  [[nodiscard]] MultiCall mcall(Calls calls) { return start_calls(std::move(calls.list), nullptr); }

  // Any thread but the loop's: waits for the result. Throws the call's error, and std::future_error when the
  // broker is destroyed meanwhile.
  template <typename T = Value>
  T call_blocking(std::string_view action, Params params = {}, const CallOptions& options = {}) {
    refuse_loop_thread("call_blocking");
    return call_future<T>(action, std::move(params), options).get().value();
  }
  // Any thread: a future of the outcome.
  template <typename T = Value>
  [[nodiscard]] std::future<Result<T>> call_future(std::string_view action, Params params = {},
                                                   const CallOptions& options = {}) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    auto future = promise->get_future();
    call_from_outside(action, std::move(params), options, [promise](Result<Payload> outcome) {
      if (!outcome) {
        promise->set_value(outcome.error());
      } else if constexpr (std::is_void_v<T>) {
        promise->set_value({});
      } else {
        promise->set_value(outcome->template as<T>());
      }
    });
    return future;
  }

  // One instance of each group gets the event. Local handlers start before emit returns.
  void emit(std::string_view event, Params payload = {}, const EventOptions& options = {}) {
    send_event(EventType::kEmit, event, std::move(payload), options, nullptr);
  }
  // Every instance on every node gets it.
  void broadcast(std::string_view event, Params payload = {}, const EventOptions& options = {}) {
    send_event(EventType::kBroadcast, event, std::move(payload), options, nullptr);
  }
  // Every instance on this node.
  void broadcast_local(std::string_view event, Params payload = {}, const EventOptions& options = {}) {
    send_event(EventType::kBroadcastLocal, event, std::move(payload), options, nullptr);
  }
  // Listens to internal events ("$node.connected", "$services.changed" …; wildcards allowed) without a
  // service.
  LocalListener on_local(std::string pattern,
                         std::function<void(std::string_view event, const Value& payload)> listener);

  // Nothing when the node did not answer in time or cannot be reached.
  Task<std::optional<Pong>> ping(std::string node_id, Duration timeout = std::chrono::seconds(2));
  // All available other nodes, or the given ones.
  Task<std::vector<std::pair<std::string, std::optional<Pong>>>> ping_all(
      Names node_ids = {}, Duration timeout = std::chrono::seconds(2));

  // Waits until each of the services (full names; alternatives as "v1.users|v2.users") is offered by some
  // node. Throws a ServerError of type WAITFOR_SERVICES after `timeout`; 0 waits for ever.
  Task<void> wait_for_services(Names full_names, Duration timeout = Duration::zero());

  // Tells the node's own guards (circuit breaker, outlier ejection) of a call's worth when the caller knows
  // better than the answer does: an empty list that cannot be, say. See CallOptions::response_node.
  void report(std::string_view action, std::string_view node_id, CallOutcome outcome);

  // Runs a coroutine that belongs to the broker; what it throws is logged. Any thread.
  void spawn(UniqueFunction<Task<void>()> work);
  // Waits. Loop thread only.
  Task<void> sleep(Duration duration);

  [[nodiscard]] const std::string& node_id() const;
  [[nodiscard]] const BrokerOptions& options() const;
  [[nodiscard]] const Logger& log() const;
  [[nodiscard]] Instant now() const;
  [[nodiscard]] const Runtime& runtime() const;
  [[nodiscard]] std::string make_id();
  // Nodes and what they offer, as `$node.list` and its kin show them.
  [[nodiscard]] Value node_list(bool with_services = false, bool only_available = false) const;
  // Requests to other nodes that wait for an answer.
  [[nodiscard]] std::size_t pending_requests() const;

 private:
  friend class Context;
  [[nodiscard]] CallRef start_call(std::string_view action, Params&& params, const CallOptions& options,
                                   Context* parent);
  [[nodiscard]] MultiCall start_calls(std::vector<CallRequest> calls, Context* parent);
  // Throws: on the loop's thread, `what` would wait for itself.
  void refuse_loop_thread(std::string_view what) const;
  void call_from_outside(std::string_view action, Params&& params, const CallOptions& options,
                         UniqueFunction<void(Result<Payload>)> done);
  void send_event(EventType type, std::string_view event, Params&& payload, const EventOptions& options,
                  Context* parent);

  std::unique_ptr<BrokerCore> core_;
};

}  // namespace weft
