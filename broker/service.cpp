#include "broker/service.h"

#include <algorithm>
#include <utility>

#include "broker/registry/registry.h"

namespace weft {

Service::Service(std::string name) : name_(std::move(name)) {
  if (name_.empty()) Error::service_schema("A service needs a name; this one is empty.").raise();
  full_name_ = name_;
}

Service::~Service() = default;

void Service::require_open(std::string_view what) const {
  if (broker_ == nullptr) return;
  Error::service_schema("Service '" + full_name_ + "': " + std::string(what) +
                        " must be described before the service is added to a broker.")
      .raise();
}

Service& Service::version(int number) {
  require_open("its version");
  version_ = Value(number);
  full_name_ = full_service_name(name_, version_, settings_);
  return *this;
}

Service& Service::version(std::string name) {
  require_open("its version");
  version_ = Value(name);
  full_name_ = full_service_name(name_, version_, settings_);
  return *this;
}

Service& Service::settings(Value settings) {
  require_open("its settings");
  if (!settings.is_object()) {
    Error::service_schema("Service '" + full_name_ + "': settings must be an object, not " +
                          std::string(to_string(settings.kind())) + ".")
        .raise();
  }
  if (const Value& secure = std::as_const(settings)["$secureSettings"]; !secure.is_null()) {
    const bool is_list_of_paths =
        secure.is_array() && std::all_of(secure.items().begin(), secure.items().end(),
                                         [](const Value& path) { return path.is_string(); });
    if (!is_list_of_paths) {  // Passed over, it would publish what is to be kept.
      Error::service_schema("Service '" + full_name_ +
                            "': the setting '$secureSettings' must be a list of paths.")
          .raise();
    }
  }
  settings_ = std::move(settings);
  full_name_ = full_service_name(name_, version_, settings_);
  return *this;
}

Service& Service::metadata(Value metadata) {
  require_open("its metadata");
  metadata_ = std::move(metadata);
  return *this;
}

Service& Service::depends_on(std::string full_name) {
  require_open("a dependency");
  dependencies_.push_back(std::move(full_name));
  return *this;
}

Service& Service::add_action(std::string_view name, std::shared_ptr<Handler> handler, ActionOptions options) {
  require_open("an action");
  if (name.empty())
    Error::service_schema("Service '" + full_name_ + "' has an action without a name.").raise();
  for (const ActionSpec& spec : actions_) {
    if (spec.name != name) continue;
    Error::service_schema("Service '" + full_name_ + "' has two actions named '" + std::string(name) + "'.")
        .raise();
  }
  actions_.push_back({std::string(name), std::move(handler), std::move(options)});
  return *this;
}

Service& Service::add_event(std::string_view pattern, std::shared_ptr<Handler> handler,
                            SubscriptionOptions options) {
  require_open("an event subscription");
  if (pattern.empty())
    Error::service_schema("Service '" + full_name_ + "' subscribes to an event without a name.").raise();
  events_.push_back({std::string(pattern), std::move(handler), std::move(options)});
  return *this;
}

Service& Service::on_created(std::function<void(Service&)> hook) {
  created_hooks_.push_back(std::move(hook));
  return *this;
}
Service& Service::on_started(std::function<Task<void>(Service&)> hook) {
  started_hooks_.push_back(std::move(hook));
  return *this;
}
Service& Service::on_stopped(std::function<Task<void>(Service&)> hook) {
  stopped_hooks_.push_back(std::move(hook));
  return *this;
}

Task<void> Service::started() {
  co_return;
}
Task<void> Service::stopped() {
  co_return;
}

}  // namespace weft
