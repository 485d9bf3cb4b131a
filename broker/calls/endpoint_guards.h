#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "broker/guards/outcome.h"
#include "broker/registry/registry.h"
#include "lib/base/life.h"
#include "lib/loop/event_loop.h"

namespace weft {

// Feeds the circuit breakers and the outlier ejection of the endpoints with this node's calls, keeps their
// time, tells the registry who is out, and says so by local events.
//
// Thread: loop thread only.
class EndpointGuards {
 public:
  struct Parts {
    EventLoop& loop;
    Registry& registry;
    std::function<void(std::string_view event, Value payload)> publish;
    Logger log;
  };
  explicit EndpointGuards(Parts parts) : parts_(std::move(parts)) {}

  // A call's share in the guard of the endpoint it was sent to.
  struct Watch {
    std::shared_ptr<EndpointGuard> guard;
    CircuitBreaker::Ticket ticket = 0;
  };

  // A call is about to be made. For endpoints of a guarded list.
  [[nodiscard]] Watch begin(ActionList& list, ActionEndpoint& endpoint);
  // It has ended. `watch` is empty afterwards.
  void end(Watch& watch, std::string_view action, CallOutcome outcome);
  // What a caller says about an endpoint, without a call of the engine's.
  void report(std::string_view action, std::string_view node, CallOutcome outcome);

 private:
  struct Place {
    ActionList* list = nullptr;
    ActionEndpoint* endpoint = nullptr;
  };
  // Where `guard` is; nothing when its endpoint is gone.
  [[nodiscard]] Place find(std::string_view action, const EndpointGuard& guard);
  void note(Place place, CircuitBreaker::Ticket ticket, CallOutcome outcome);
  void tick(const std::shared_ptr<EndpointGuard>& guard, std::string_view action);
  void on_breaker_changed(Place place, CircuitBreaker::State before);
  void tell(std::string_view event, const Place& place, Value numbers);
  void schedule(const Place& place, Instant when);

  Parts parts_;
  Life life_;
};

}  // namespace weft
