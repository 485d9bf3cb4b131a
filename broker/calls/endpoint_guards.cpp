#include "broker/calls/endpoint_guards.h"

#include <utility>

namespace weft {

namespace {

constexpr std::string_view kOpened = "$circuit-breaker.opened";
constexpr std::string_view kEjected = "$outlier.ejected";

}  // namespace

EndpointGuards::Place EndpointGuards::find(std::string_view action, const EndpointGuard& guard) {
  ActionList* list = parts_.registry.find_action(action);
  if (list == nullptr) return {};
  for (const auto& endpoint : list->endpoints) {
    if (endpoint->guard.get() == &guard) return {list, endpoint.get()};
  }
  return {};
}

EndpointGuards::Watch EndpointGuards::begin(ActionList& list, ActionEndpoint& endpoint) {
  Watch watch{endpoint.guard, 0};
  if (!list.guards.breaker.enabled) return watch;
  const CircuitBreaker::State before = watch.guard->breaker.state();
  watch.ticket = watch.guard->breaker.admit(parts_.loop.now());
  on_breaker_changed({&list, &endpoint}, before);
  return watch;
}

void EndpointGuards::end(Watch& watch, std::string_view action, CallOutcome outcome) {
  const Watch ended = std::exchange(watch, {});
  if (const Place place = find(action, *ended.guard); place.endpoint != nullptr)
    note(place, ended.ticket, outcome);
}

void EndpointGuards::report(std::string_view action, std::string_view node, CallOutcome outcome) {
  ActionList* list = parts_.registry.find_action(action);
  if (list == nullptr || !list->guards.enabled()) return;
  for (const auto& endpoint : list->endpoints) {
    if (endpoint->node->id != node) continue;
    // Half open, a word from outside is no probe.
    CircuitBreaker& breaker = endpoint->guard->breaker;
    const bool counts = list->guards.breaker.enabled && breaker.state() == CircuitBreaker::State::kClosed;
    note({list, endpoint.get()}, counts ? breaker.admit(parts_.loop.now()) : 0, outcome);
    return;
  }
}

void EndpointGuards::note(Place place, CircuitBreaker::Ticket ticket, CallOutcome outcome) {
  const Instant now = parts_.loop.now();
  EndpointGuard& guard = *place.endpoint->guard;
  const GuardPolicies& policies = place.list->guards;
  if (policies.outlier.enabled && outcome != CallOutcome::kUnknown) {
    const bool failed = outcome == CallOutcome::kFailure;
    if (OutlierEjection(policies.outlier).report(place.list->outlier_records, guard.outlier, failed, now)) {
      parts_.registry.guards_changed(*place.list);
      schedule(place, guard.outlier.until);
      tell(kEjected, place,
           Value{{"consecutive", guard.outlier.consecutive},
                 {"failures", guard.outlier.window.failures()},
                 {"count", guard.outlier.window.calls()},
                 {"times", guard.outlier.times},
                 {"duration", to_ms(guard.outlier.until - now)}});
      place = find(place.list->name, guard);  // Listeners may have changed the registry.
      if (place.endpoint == nullptr) return;
    }
  }
  if (!policies.breaker.enabled || ticket == 0) return;
  const CircuitBreaker::State before = guard.breaker.state();
  guard.breaker.record(ticket, outcome, now);
  on_breaker_changed(place, before);
}

void EndpointGuards::on_breaker_changed(Place place, CircuitBreaker::State before) {
  using State = CircuitBreaker::State;
  const CircuitBreaker& breaker = place.endpoint->guard->breaker;
  const State state = breaker.state();
  if (state == before) return;
  if (breaker.next_tick() != kNever) schedule(place, breaker.next_tick());
  parts_.registry.guards_changed(*place.list);
  if (state == State::kOpen) {
    tell(kOpened, place,
         Value{
             {"failures", breaker.failures()}, {"count", breaker.calls()}, {"rate", breaker.failure_rate()}});
  } else if (state == State::kHalfOpen) {
    tell("$circuit-breaker.half-opened", place, Value::object());
  } else if (state == State::kClosed) {
    tell("$circuit-breaker.closed", place, Value::object());
  }
}

void EndpointGuards::tell(std::string_view event, const Place& place, Value numbers) {
  Value payload{{"nodeID", place.endpoint->node->id},
                {"service", place.endpoint->service},
                {"action", place.list->name}};
  payload.merge(numbers);
  const bool is_out = event == kOpened || event == kEjected;
  parts_.log.log(is_out ? LogLevel::kWarn : LogLevel::kInfo, "Action '", place.list->name, "' of node '",
                 place.endpoint->node->id, "': ", event);
  parts_.publish(event, std::move(payload));
}

void EndpointGuards::schedule(const Place& place, Instant when) {
  parts_.loop.schedule(
      when, life_.guard([this, guard = std::weak_ptr(place.endpoint->guard), action = place.list->name] {
        if (const auto alive = guard.lock()) tick(alive, action);
      }));
}

void EndpointGuards::tick(const std::shared_ptr<EndpointGuard>& guard, std::string_view action) {
  Place place = find(action, *guard);
  if (place.endpoint == nullptr) return;
  const Instant now = parts_.loop.now();
  // Its own ejection alone: each has a timer, and an event, of its own.
  OutlierRecord* const own[] = {&guard->outlier};
  if (OutlierEjection(place.list->guards.outlier).tick(own, now)) {
    parts_.registry.guards_changed(*place.list);
    tell("$outlier.returned", place, Value::object());
    place = find(action, *guard);
    if (place.endpoint == nullptr) return;
  }
  const CircuitBreaker::State before = guard->breaker.state();
  guard->breaker.tick(now);
  on_breaker_changed(place, before);
}

}  // namespace weft
