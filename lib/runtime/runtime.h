#pragma once

#include <memory>

#include "lib/base/log.h"
#include "lib/loop/event_loop.h"
#include "lib/net/network.h"
#include "lib/net/poller.h"
#include "lib/random/random.h"

namespace weft {

// What the machine and this process are like: what heartbeats and `$node.health` report. Loop thread only.
class SystemProbe {
 public:
  virtual ~SystemProbe() = default;
  // Load of all cores since the last call, 0–100; negative while unknown.
  [[nodiscard]] virtual int cpu_percent() = 0;
  // `$node.health` without its `net` and `time` parts.
  [[nodiscard]] virtual Value health() = 0;
  [[nodiscard]] virtual std::int64_t process_id() const = 0;
};

// What a node needs of the world. Nothing else asks the system for time, entropy or sockets.
// All members are borrowed and outlive the node.
struct Runtime {
  EventLoop& loop;
  Network& network;
  Random& random;
  SystemProbe& system;
  std::shared_ptr<LogSink> log;
  // For transporters over libraries that bring their own sockets; null in a simulation.
  Poller* poller = nullptr;
};

}  // namespace weft
