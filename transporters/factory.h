#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/error/result.h"
#include "lib/runtime/runtime.h"
#include "lib/transport/transporter.h"
#include "transporters/memory/memory_bus.h"
#include "transporters/nats/nats_options.h"
#include "transporters/tcp/tcp_options.h"

namespace weft {

// Which transporter, and its settings.
struct TransporterConfig {
  // "TCP", "tcp://host:port/nodeID,…", "NATS", "nats://host:port,…", "Memory", "memory://name" (names in any
  // case), or empty for a node on its own.
  std::string url;
  TcpOptions tcp;
  NatsOptions nats;
};

// The memory buses of a process by name. Owned by whoever makes several brokers meet.
using MemoryBuses = MemoryHub;

// Makes the transporter of `config.url`; null for an empty one. What is unknown, or not part of this build,
// is a BrokerOptionsError that says what there is. `buses` may be null where memory transporters make no
// sense.
[[nodiscard]] Result<std::unique_ptr<Transporter>> make_transporter(const TransporterConfig& config,
                                                                    const Runtime& runtime, const Logger& log,
                                                                    MemoryBuses* buses);

// What this build has: "TCP", "Memory", "NATS".
[[nodiscard]] std::vector<std::string_view> built_in_transporters();

}  // namespace weft
