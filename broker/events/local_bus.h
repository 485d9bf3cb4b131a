#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/log.h"
#include "lib/value/value.h"

namespace weft {

// Internal events inside one process: in-process code listens here without a service.
// Listeners run in order of subscription; one may end its own or another's subscription meanwhile. What one
// throws is logged.
class LocalBus {
 public:
  using Listener = std::function<void(std::string_view event, const Value& payload)>;

  explicit LocalBus(Logger log) : log_(std::move(log)) {}

  std::uint64_t subscribe(std::string pattern, Listener listener);
  void unsubscribe(std::uint64_t id);
  void publish(std::string_view event, const Value& payload);

 private:
  struct Entry {
    std::string pattern;
    std::shared_ptr<Listener> listener;
  };
  Logger log_;
  std::map<std::uint64_t, Entry> listeners_;
  std::uint64_t last_id_ = 0;
};

}  // namespace weft
