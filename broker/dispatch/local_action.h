#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "broker/guards/bulkhead.h"
#include "broker/service.h"

namespace weft {

// The bulkhead of a handler of this node; its entries are the numbers of runs.
using RunQueue = Bulkhead<std::uint64_t>;

// An action of this node as the registry points to it. Holds its service alive while calls run.
class LocalAction {
 public:
  // `queue` may be null.
  LocalAction(std::string full_name, std::shared_ptr<Service> service, std::shared_ptr<Handler> handler,
              const ActionOptions& options, std::shared_ptr<RunQueue> queue = nullptr)
      : full_name_(std::move(full_name)),
        service_(std::move(service)),
        handler_(std::move(handler)),
        queue_(std::move(queue)),
        fallback_(options.fallback),
        visibility_(options.visibility),
        blocking_(options.blocking) {}

  [[nodiscard]] const std::string& full_name() const { return full_name_; }
  [[nodiscard]] Service& service() const { return *service_; }
  [[nodiscard]] Handler& handler() const { return *handler_; }
  // What keeps its runs apart from others'; null: nothing.
  [[nodiscard]] const std::shared_ptr<RunQueue>& queue() const { return queue_; }
  [[nodiscard]] bool has_fallback() const { return fallback_ != nullptr; }
  // The result in the place of a failure.
  [[nodiscard]] Result<Payload> recover(Context& context, const Error& error) const {
    try {
      return Payload(fallback_(context, error));
    } catch (...) {
      return Error::from_exception(std::current_exception());
    }
  }
  [[nodiscard]] bool callable_from_outside() const { return visibility_ < Visibility::kProtected; }
  [[nodiscard]] bool blocking() const { return blocking_; }
  // Ends within the call that starts it: needs neither a context on the heap nor copies of what it was sent.
  [[nodiscard]] bool is_inline() const { return !blocking_ && !handler_->is_coroutine(); }

 private:
  std::string full_name_;
  std::shared_ptr<Service> service_;
  std::shared_ptr<Handler> handler_;
  std::shared_ptr<RunQueue> queue_;
  std::function<Value(Context&, const Error&)> fallback_;
  Visibility visibility_;
  bool blocking_;
};

// An event subscription of this node.
class LocalSubscription {
 public:
  LocalSubscription(std::string pattern, std::string group, std::shared_ptr<Service> service,
                    std::shared_ptr<Handler> handler, std::shared_ptr<RunQueue> queue = nullptr)
      : pattern_(std::move(pattern)),
        group_(std::move(group)),
        service_(std::move(service)),
        handler_(std::move(handler)),
        queue_(std::move(queue)) {}

  [[nodiscard]] const std::string& pattern() const { return pattern_; }
  [[nodiscard]] const std::string& group() const { return group_; }
  [[nodiscard]] Service& service() const { return *service_; }
  [[nodiscard]] Handler& handler() const { return *handler_; }
  [[nodiscard]] const std::shared_ptr<RunQueue>& queue() const { return queue_; }

 private:
  std::string pattern_;
  std::string group_;
  std::shared_ptr<Service> service_;
  std::shared_ptr<Handler> handler_;
  std::shared_ptr<RunQueue> queue_;
};

}  // namespace weft
