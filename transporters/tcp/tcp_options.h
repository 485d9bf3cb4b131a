#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/error/result.h"
#include "lib/time/clock.h"
#include "lib/value/value.h"

namespace weft {

// Settings of the TCP transporter. Defaults are those of the mesh's other implementations.
struct TcpOptions {
  std::string host;        // Interface to listen on; empty: all, IPv4 and IPv6.
  std::uint16_t port = 0;  // 0: that of our own entry in `urls`, else the system chooses.
  // Nodes known from the start. Text "tcp://host:port/nodeID,host:port/nodeID" or "file://path", a list of
  // such entries, or an object {nodeID: "host:port"}. Null: none.
  Value urls;
  // What others are told to dial when they have nothing better: the host name, else our first IP address.
  bool use_hostname = true;

  bool udp_discovery = true;
  std::uint16_t udp_port = 4445;
  std::string udp_multicast = "239.0.0.0";  // Empty: no multicast.
  int udp_multicast_ttl = 1;
  bool udp_broadcast = false;                        // To the broadcast address of every interface, or to …
  std::vector<std::string> udp_broadcast_addresses;  // … these instead, when there are some.
  std::string udp_bind_address;                      // IPv4 address of the one interface to use.
  Duration udp_period = std::chrono::seconds(30);
  bool udp_reuse_addr = true;
  int udp_max_discovery = 0;  // Announcements to make; 0: without end.

  std::size_t max_connections = 32;       // That we open; the least recently used one makes way. 0: no limit.
  std::size_t max_accepted = 1024;        // That others open.
  std::size_t max_packet_size = 1 << 20;  // Of one frame that comes in; what we send stays 64 KiB below it.
  // Of frames that have come in part, over all connections that others open. Above it the one whose frame has
  // been under way for longest is closed. Never less than max_packet_size.
  std::size_t partial_bytes_max = 64UL << 20;
  std::size_t queue_bytes_max = 64UL << 20;  // Waiting for one peer; above it sends are refused.
  // The same for all peers together, of what is beyond the first MiB of each.
  std::size_t queue_total_bytes_max = 256UL << 20;
  // Within which a connection's first frame has to come, and a frame that has begun to end; 0: any time.
  Duration frame_timeout = std::chrono::seconds(30);
  Duration connect_timeout = std::chrono::seconds(3);
  Duration user_timeout = std::chrono::seconds(2);    // Bytes unacknowledged for so long end a connection.
  Duration keepalive_idle = std::chrono::seconds(1);  // 0: no keep-alive probes.
};

// The least max_packet_size: room for gossip about a small mesh.
inline constexpr std::size_t kPacketSizeMin = 4096;

// A BrokerOptionsError that names the option, what it is and what is allowed.
[[nodiscard]] Result<> validate(const TcpOptions& options);

// The largest payload that is sent with these options: a peer counts whatever else it has buffered against
// its limit, so frames stay well below it.
[[nodiscard]] std::size_t payload_bytes_max(const TcpOptions& options);

}  // namespace weft
