#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/dispatch/dispatcher.h"
#include "broker/options.h"
#include "broker/registry/registry.h"
#include "broker/service.h"
#include "lib/loop/event_loop.h"
#include "lib/loop/signal.h"
#include "lib/loop/task.h"

namespace weft {

// The services of this node: from being added, over started and registered, to stopped and gone.
//
// Thread: loop thread only.
class ServiceHost {
 public:
  struct Parts {
    Broker& broker;
    EventLoop& loop;
    Registry& registry;
    Signal& registry_changed;                // Wakes those who wait for dependencies.
    std::function<void()> on_local_changed;  // The list of local services is another one now.
    std::function<void(const Error&, std::string_view type)> on_error;  // Failures nobody awaits.
    std::function<void(UniqueFunction<Task<void>()>)> spawn;
    Duration dependency_timeout;
    Logger log;
    BulkheadPolicy bulkhead;  // Of actions and events without one of their own.
  };
  explicit ServiceHost(Parts parts) : parts_(std::move(parts)) {}

  // Throws ServiceSchemaError. Starts it in the background once start_all() was called.
  Service& add(std::shared_ptr<Service> service);
  [[nodiscard]] Service* find(std::string_view full_name) const;

  // Starts all services side by side; throws the first failure, when all have ended.
  Task<void> start_all();
  // Runs the stopped hooks of all services side by side; failures go to on_error.
  Task<void> stop_all();
  // Throws ServiceNotFoundError.
  Task<void> destroy(std::string full_name);

  // What `INFO.services` holds: the services that have started, in order of registration.
  [[nodiscard]] Value announcement() const;

 private:
  struct Entry {
    std::shared_ptr<Service> service;
    Value definition;
    bool registered = false;
    bool starting = false;
    bool stopping = false;
  };

  Task<void> start_one(std::shared_ptr<Entry> entry);
  Task<void> stop_one(std::shared_ptr<Entry> entry);
  void check(const Service& service) const;
  void register_entry(Entry& entry);
  [[nodiscard]] std::shared_ptr<RunQueue> make_queue(const std::optional<BulkheadPolicy>& own) const;

  Parts parts_;
  std::vector<std::shared_ptr<Entry>> entries_;
  std::vector<std::shared_ptr<Entry>> registered_;  // In order of registration.
  bool start_at_once_ = false;
};

// A service's object in INFO: what peers learn of it. Paths listed in the setting `$secureSettings` are left
// out.
[[nodiscard]] Value describe_service(const Service& service);
// The full name of an action of `service`.
[[nodiscard]] std::string full_action_name(const Service& service, std::string_view action);

}  // namespace weft
