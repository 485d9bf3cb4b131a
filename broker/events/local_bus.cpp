#include "broker/events/local_bus.h"

#include <exception>

#include "broker/registry/pattern.h"
#include "lib/error/error.h"

namespace weft {

std::uint64_t LocalBus::subscribe(std::string pattern, Listener listener) {
  listeners_.emplace(++last_id_, Entry{std::move(pattern), std::make_shared<Listener>(std::move(listener))});
  return last_id_;
}

void LocalBus::unsubscribe(std::uint64_t id) {
  listeners_.erase(id);
}

void LocalBus::publish(std::string_view event, const Value& payload) {
  // By number, not by iterator: a listener may change the table.
  std::uint64_t at = 0;
  while (true) {
    const auto next = listeners_.upper_bound(at);
    if (next == listeners_.end()) return;
    at = next->first;
    if (!matches_strict(event, next->second.pattern)) continue;
    const auto listener = next->second.listener;
    try {
      (*listener)(event, payload);
    } catch (...) {
      log_.error("A listener to '", event,
                 "' failed: ", Error::from_exception(std::current_exception()).to_string());
    }
  }
}

}  // namespace weft
