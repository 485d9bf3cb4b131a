#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/net/network.h"
#include "lib/sim/sim_runtime.h"

namespace weft {

struct SimBusOptions {
  std::uint16_t port = 4222;
  // The server's side of its connections. As with the real one, a client behind a cut wire stays subscribed
  // until its kernel gives up.
  StreamOptions stream{.queue_bytes_max = 8UL << 20,
                       .user_timeout = std::chrono::seconds(10),
                       .keepalive_idle = std::chrono::seconds(15)};
};

// A message bus with the manners of a NATS server, as a process of its own on a host of its own: it can be
// cut off, frozen, killed and started again. Nodes reach it with a SimBusTransporter.
//
// Takes frames for a node, for all nodes of a namespace, or for one of those who subscribed to an action or
// to an event in a group. Tells the sender of a frame with a correlation when nobody takes it. Drops a client
// that reads too slowly. Keeps nothing for those who are away.
//
// Ownership: the world outlives it.
class SimBus {
 public:
  // Starts it on a new host of that name.
  explicit SimBus(SimWorld& world, std::string host = "bus", const SimBusOptions& options = {});
  ~SimBus();
  SimBus(const SimBus&) = delete;
  SimBus& operator=(const SimBus&) = delete;

  [[nodiscard]] SimHost& host() { return host_; }
  [[nodiscard]] SocketAddress address() const { return {host_.address(), options_.port}; }

  // Not from inside a turn of the bus.
  void stop();
  void start();
  [[nodiscard]] bool is_running() const { return server_ != nullptr; }
  void freeze();
  void thaw();
  // How many clients have joined.
  [[nodiscard]] std::size_t client_count() const;

 private:
  class Server;

  SimWorld& world_;
  SimHost& host_;
  const SimBusOptions options_;
  std::unique_ptr<Server> server_;
};

}  // namespace weft
