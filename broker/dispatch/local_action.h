#pragma once

#include <memory>
#include <string>

#include "broker/service.h"

namespace weft {

// An action of this node as the registry points to it. Holds its service alive while calls run.
class LocalAction {
 public:
  LocalAction(std::string full_name, std::shared_ptr<Service> service, std::shared_ptr<Handler> handler,
              const ActionOptions& options)
      : full_name_(std::move(full_name)),
        service_(std::move(service)),
        handler_(std::move(handler)),
        visibility_(options.visibility),
        blocking_(options.blocking) {}

  [[nodiscard]] const std::string& full_name() const { return full_name_; }
  [[nodiscard]] Service& service() const { return *service_; }
  [[nodiscard]] Handler& handler() const { return *handler_; }
  [[nodiscard]] bool callable_from_outside() const { return visibility_ < Visibility::kProtected; }
  [[nodiscard]] bool blocking() const { return blocking_; }
  // Ends within the call that starts it: needs neither a context on the heap nor copies of what it was sent.
  [[nodiscard]] bool is_inline() const { return !blocking_ && !handler_->is_coroutine(); }

 private:
  std::string full_name_;
  std::shared_ptr<Service> service_;
  std::shared_ptr<Handler> handler_;
  Visibility visibility_;
  bool blocking_;
};

// An event subscription of this node.
class LocalSubscription {
 public:
  LocalSubscription(std::string pattern, std::string group, std::shared_ptr<Service> service,
                    std::shared_ptr<Handler> handler)
      : pattern_(std::move(pattern)),
        group_(std::move(group)),
        service_(std::move(service)),
        handler_(std::move(handler)) {}

  [[nodiscard]] const std::string& pattern() const { return pattern_; }
  [[nodiscard]] const std::string& group() const { return group_; }
  [[nodiscard]] Service& service() const { return *service_; }
  [[nodiscard]] Handler& handler() const { return *handler_; }

 private:
  std::string pattern_;
  std::string group_;
  std::shared_ptr<Service> service_;
  std::shared_ptr<Handler> handler_;
};

}  // namespace weft
