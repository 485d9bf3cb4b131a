#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "broker/context.h"
#include "broker/guards/policies.h"
#include "broker/handler.h"
#include "lib/base/log.h"
#include "lib/loop/task.h"
#include "lib/time/clock.h"
#include "lib/value/value.h"

namespace weft {

class Broker;

enum class Visibility : std::uint8_t {
  kPublished,  // Everyone, gateways too.
  kPublic,     // Every node.
  kProtected,  // This node only, and this node enforces it.
  kPrivate,    // Never registered.
};

struct ActionOptions {
  std::optional<Duration> timeout;  // Of calls that bring none of their own; published to callers.
  bool idempotent =
      false;  // May run twice: a call whose node is lost is tried elsewhere, even without retries.
  // Of callers, for this action: published, and laid over their own options.
  std::optional<RetryPolicy> retry;
  std::optional<CircuitBreakerPolicy> circuit_breaker;
  std::optional<OutlierPolicy> outlier;
  // Of this node; default: the broker's. Does not concern plain functions, of which there is one at a time.
  std::optional<BulkheadPolicy> bulkhead;
  // Makes the result when the handler fails or is refused, for whatever reason; what it throws is the failure
  // then. Of calls from this node it runs after their last try.
  std::function<Value(Context&, const Error&)> fallback;
  bool blocking = false;  // Runs on the worker pool: it may block, and must not touch loop-thread objects.
  Visibility visibility = Visibility::kPublished;
  std::string strategy;  // Of callers, for this action. Empty: their default.
  Value strategy_options;
  Value params;  // Rules in fastest-validator's form, published; typed params publish their own.
  std::string description;
  Value extra;  // Any further fields to publish.
};

struct SubscriptionOptions {
  std::string group;  // Empty: the service's name.
  std::string strategy;
  Value strategy_options;
  std::optional<BulkheadPolicy> bulkhead;  // Default: the broker's. Does not concern plain functions.
};

// A service: a name with actions, event subscriptions and hooks. Built in place with lambdas, or as a class
// whose constructor names its member functions:
//
//   class Math : public weft::Service {
//    public:
//     Math() : Service("math") { action("add", &Math::add); }
//     int64_t add(weft::Context&, const AddParams& p) { return p.a + p.b; }
//   };
//
// Described before it is added to a broker; from then on the broker owns it and calls in on the loop's
// thread.
class Service {
 public:
  explicit Service(std::string name);
  virtual ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Service& version(int number);
  Service& version(std::string name);
  Service& settings(Value settings);
  Service& metadata(Value metadata);
  // Full names of services that must be there before started() runs.
  Service& depends_on(std::string full_name);

  // Handlers take (Context&) or (Context&, P) where P is a described struct, a Value or a Payload; they give
  // nothing, a value, a Result or a Task of these.
  template <typename F>
  requires(!std::is_member_function_pointer_v<F>) Service& action(std::string_view name, F handler,
                                                                  ActionOptions options = {}) {
    return add_action(name, make_handler(std::move(handler)), std::move(options));
  }
  template <typename S, typename R, typename... Args>
  Service& action(std::string_view name, R (S::*method)(Args...), ActionOptions options = {}) {
    static_assert(std::is_base_of_v<Service, S>);
    return add_action(name, make_member_handler(static_cast<S*>(this), method), std::move(options));
  }

  template <typename F>
  requires(!std::is_member_function_pointer_v<F>) Service& event(std::string_view pattern, F handler,
                                                                 SubscriptionOptions options = {}) {
    return add_event(pattern, make_handler(std::move(handler)), std::move(options));
  }
  template <typename S, typename R, typename... Args>
  Service& event(std::string_view pattern, R (S::*method)(Args...), SubscriptionOptions options = {}) {
    static_assert(std::is_base_of_v<Service, S>);
    return add_event(pattern, make_member_handler(static_cast<S*>(this), method), std::move(options));
  }

  // Hooks for services built in place; classes override the virtual ones below. Several run in order, stopped
  // ones in reverse.
  Service& on_created(std::function<void(Service&)> hook);
  Service& on_started(std::function<Task<void>(Service&)> hook);
  Service& on_stopped(std::function<Task<void>(Service&)> hook);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& full_name() const { return full_name_; }
  [[nodiscard]] const Value& settings() const { return settings_; }
  [[nodiscard]] Broker& broker() const { return *broker_; }  // Once added.
  [[nodiscard]] const Logger& log() const { return log_; }

  struct ActionSpec {
    std::string name;
    std::shared_ptr<Handler> handler;
    ActionOptions options;
  };
  struct EventSpec {
    std::string pattern;
    std::shared_ptr<Handler> handler;
    SubscriptionOptions options;
  };
  [[nodiscard]] const std::vector<ActionSpec>& action_specs() const { return actions_; }
  [[nodiscard]] const std::vector<EventSpec>& event_specs() const { return events_; }
  [[nodiscard]] const std::vector<std::string>& dependencies() const { return dependencies_; }
  [[nodiscard]] const Value& version_value() const { return version_; }
  [[nodiscard]] const Value& metadata_value() const { return metadata_; }

 protected:
  // Runs when the service is added.
  virtual void created() {}
  // Runs at start, after the dependencies are there; the service becomes callable when it is done.
  virtual Task<void> started();
  // Runs at stop, when no new calls come in.
  virtual Task<void> stopped();

 private:
  friend class ServiceHost;
  Service& add_action(std::string_view name, std::shared_ptr<Handler> handler, ActionOptions options);
  Service& add_event(std::string_view pattern, std::shared_ptr<Handler> handler, SubscriptionOptions options);
  void require_open(std::string_view what) const;

  std::string name_;
  std::string full_name_;
  Value version_;
  Value settings_ = Value::object();
  Value metadata_ = Value::object();
  std::vector<std::string> dependencies_;
  std::vector<ActionSpec> actions_;
  std::vector<EventSpec> events_;
  std::vector<std::function<void(Service&)>> created_hooks_;
  std::vector<std::function<Task<void>(Service&)>> started_hooks_;
  std::vector<std::function<Task<void>(Service&)>> stopped_hooks_;
  Broker* broker_ = nullptr;
  Logger log_;
};

}  // namespace weft
