#include "broker/services/service_host.h"

#include <algorithm>

#include "broker/broker.h"
#include "lib/loop/when_all.h"

namespace weft {

void ServiceHost::check(const Service& service) const {
  if (find(service.full_name()) != nullptr) {
    Error::service_schema("Service '" + service.full_name() +
                          "' is already offered by this node: give one of the two another name or version.")
        .raise();
  }
  for (std::size_t i = 0; i < service.event_specs().size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (service.event_specs()[i].pattern != service.event_specs()[k].pattern) continue;
      Error::service_schema("Service '" + service.full_name() + "' subscribes twice to '" +
                            service.event_specs()[i].pattern + "': do both things in one handler.")
          .raise();
    }
  }
  const auto check_strategy = [&](std::string_view what, const std::string& name, const Value& options) {
    if (name.empty() && options.is_null()) return;
    const std::string where = "Service '" + service.full_name() + "', " + std::string(what) + ": ";
    if (name.empty()) Error::service_schema(where + "'strategy_options' without a 'strategy'.").raise();
    if (auto good = parts_.registry.check_strategy(name, options); !good)
      Error::service_schema(where + good.error().message(), good.error().data()).raise();
  };
  const auto check_guards = [&](const std::string& what, const auto&... policies) {
    const auto refuse = [&](const std::optional<Error>& bad) {
      if (bad)
        Error::service_schema("Service '" + service.full_name() + "', " + what + ": " + bad->message())
            .raise();
    };
    (refuse(policies ? fault_of(*policies) : std::nullopt), ...);
  };
  for (const auto& spec : service.event_specs()) {
    check_guards("event '" + spec.pattern + "'", spec.options.bulkhead);
    check_strategy("event '" + spec.pattern + "'", spec.options.strategy, spec.options.strategy_options);
  }
  for (const auto& spec : service.action_specs()) {
    check_guards("action '" + spec.name + "'", spec.options.retry, spec.options.circuit_breaker,
                 spec.options.outlier, spec.options.bulkhead);
    check_strategy("action '" + spec.name + "'", spec.options.strategy, spec.options.strategy_options);
    if (!spec.options.extra.is_null() && !spec.options.extra.is_object()) {
      Error::service_schema("Service '" + service.full_name() + "', action '" + spec.name +
                            "': 'extra' must be an object.")
          .raise();
    }
  }
}

Service& ServiceHost::add(std::shared_ptr<Service> service) {
  if (service == nullptr) Error::service_schema("No service was given.").raise();
  check(*service);
  auto entry = std::make_shared<Entry>();
  entry->service = service;
  entry->definition = describe_service(*service);
  service->broker_ = &parts_.broker;
  service->log_ = parts_.log.with_module(service->full_name());
  service->created();
  for (const auto& hook : service->created_hooks_) hook(*service);
  entries_.push_back(entry);
  if (start_at_once_) {
    parts_.spawn([this, entry]() -> Task<void> {
      std::optional<Error> failure;
      try {
        co_await start_one(entry);
      } catch (...) {
        failure = Error::from_exception(std::current_exception());
      }
      if (failure) {
        parts_.log.error("Service '", entry->service->full_name(),
                         "' failed to start: ", failure->to_string());
        std::erase(entries_, entry);
        parts_.on_error(*failure, "failedServiceLoad");
      }
    });
  }
  return *service;
}

Service* ServiceHost::find(std::string_view full_name) const {
  for (const auto& entry : entries_) {
    if (entry->service->full_name() == full_name) return entry->service.get();
  }
  return nullptr;
}

Task<void> ServiceHost::start_one(std::shared_ptr<Entry> entry) {
  entry->starting = true;
  Service& service = *entry->service;
  if (!service.dependencies().empty()) {
    parts_.log.info("Service '", service.full_name(), "' waits for its dependencies.");
    co_await parts_.broker.wait_for_services(service.dependencies(), parts_.dependency_timeout);
  }
  co_await service.started();
  for (const auto& hook : service.started_hooks_) co_await hook(service);
  if (entry->stopping) co_return;
  register_entry(*entry);
  registered_.push_back(entry);
  parts_.log.info("Service '", service.full_name(), "' started.");
  parts_.on_local_changed();
}

std::shared_ptr<RunQueue> ServiceHost::make_queue(const std::optional<BulkheadPolicy>& own) const {
  const BulkheadPolicy& policy = own ? *own : parts_.bulkhead;
  return policy.enabled ? std::make_shared<RunQueue>(policy) : nullptr;
}

void ServiceHost::register_entry(Entry& entry) {
  const std::shared_ptr<Service>& service = entry.service;
  Registry::LocalServiceParts parts;
  parts.full_name = service->full_name();
  parts.definition = &entry.definition;
  for (const auto& spec : service->action_specs()) {
    if (spec.options.visibility == Visibility::kPrivate) continue;
    std::string name = full_action_name(*service, spec.name);
    auto action = std::make_shared<LocalAction>(name, service, spec.handler, spec.options,
                                                make_queue(spec.options.bulkhead));
    parts.actions.emplace_back(std::move(name), std::move(action));
  }
  const Value& definitions = std::as_const(entry.definition)["events"];
  for (const auto& spec : service->event_specs()) {
    const std::string group = spec.options.group.empty() ? service->name() : spec.options.group;
    parts.subscriptions.push_back(std::make_shared<LocalSubscription>(
        spec.pattern, group, service, spec.handler, make_queue(spec.options.bulkhead)));
    parts.patterns_and_groups.emplace_back(spec.pattern, group);
    parts.subscription_definitions.push_back(&definitions[spec.pattern]);
  }
  parts_.registry.register_local(parts);
  entry.registered = true;
}

Task<void> ServiceHost::start_all() {
  start_at_once_ = true;
  std::vector<Task<void>> tasks;
  const auto entries = entries_;  // Started hooks may add services: those start by themselves.
  for (const auto& entry : entries) tasks.push_back(start_one(entry));
  const auto failures = co_await when_all(std::move(tasks));
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (!failures[i]) continue;
    parts_.log.error("Service '", entries[i]->service->full_name(), "' failed to start.");
    std::rethrow_exception(failures[i]);
  }
}

Task<void> ServiceHost::stop_one(std::shared_ptr<Entry> entry) {
  if (entry->stopping) co_return;
  entry->stopping = true;
  Service& service = *entry->service;
  if (!entry->starting) co_return;
  for (auto hook = service.stopped_hooks_.rbegin(); hook != service.stopped_hooks_.rend(); ++hook)
    co_await (*hook)(service);
  co_await service.stopped();
}

Task<void> ServiceHost::stop_all() {
  start_at_once_ = false;
  std::vector<Task<void>> tasks;
  const auto entries = entries_;
  for (const auto& entry : entries) tasks.push_back(stop_one(entry));
  const auto failures = co_await when_all(std::move(tasks));
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (!failures[i]) continue;
    const Error error = Error::from_exception(failures[i]);
    parts_.log.error("Service '", entries[i]->service->full_name(), "' failed to stop: ", error.to_string());
    parts_.on_error(error, "failedServicesStop");
  }
}

Task<void> ServiceHost::destroy(std::string full_name) {
  std::shared_ptr<Entry> entry;
  for (const auto& known : entries_) {
    if (known->service->full_name() == full_name) entry = known;
  }
  if (entry == nullptr) {
    Error(ErrorClass::kServiceNotFound, "Service '" + full_name + "' is not offered by this node.", {},
          Value{{"service", full_name}})
        .raise();
  }
  std::erase(entries_, entry);
  if (entry->registered) {  // Nobody new gets in; then the hooks run.
    parts_.registry.unregister_local(full_name);
    std::erase(registered_, entry);
    parts_.on_local_changed();
  }
  std::optional<Error> failure;
  try {
    co_await stop_one(entry);
  } catch (...) {
    failure = Error::from_exception(std::current_exception());
  }
  if (failure) {
    parts_.log.error("Service '", full_name, "' failed to stop: ", failure->to_string());
    parts_.on_error(*failure, "failedServiceDestruction");
  }
}

Value ServiceHost::announcement() const {
  Value services = Value::array();
  for (const auto& entry : registered_) services.push_back(entry->definition);
  return services;
}

}  // namespace weft
