#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/time/clock.h"
#include "lib/value/value.h"

namespace weft {

// Longer names of nodes, and of what they offer, are not taken from peers.
inline constexpr std::size_t kNodeIdBytesMax = 256;
inline constexpr std::size_t kNameBytesMax = 256;

// One node as this node's registry knows it, itself included.
struct Node {
  std::string id;
  std::string instance_id;  // New at each start of the node's process; empty when the peer sent none.
  bool local = false;
  bool available = false;
  std::uint64_t seq = 0;  // Version of its service list; 0 while nothing was heard from the node itself.

  std::string hostname;
  std::vector<std::string> ip_list;
  std::string udp_address;  // Where a datagram or a HELLO of it came from; empty if never.
  std::uint16_t port = 0;   // Where it listens (TCP); 0 on a bus.

  Value client;
  Value config;
  Value metadata = Value::object();
  Value services = Value::array();  // As announced: what `INFO.services` holds.

  std::size_t info_bytes = 0;      // About what the four above take in memory, …
  std::size_t services_bytes = 0;  // … and services alone.

  std::optional<int> cpu;  // Percent of all cores, 0–100.
  std::uint64_t cpu_seq = 0;
  std::optional<double> latency_ms;  // Average round trip to its host, when measured.

  Instant since{};  // When this process of it was first heard; zero for our own.
  Instant last_heartbeat{};
  std::optional<Instant> offline_since;
};

}  // namespace weft
