#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "broker/registry/node_catalog.h"
#include "lib/random/random.h"
#include "lib/time/clock.h"

namespace weft {

struct LatencySettings {
  std::size_t collect_count = 5;  // Round trips that an average is taken over.
  Duration ping_interval = std::chrono::seconds(10);
};

// Measures the round trip to each host for the Latency strategy: one node of a host stands for all of it.
//
// Says whom to ping, takes the answers, and keeps Node::latency_ms of all nodes of the host at the average of
// the last few. One for the whole broker, made when the first Latency strategy is. Thread: loop thread only.
class LatencyMonitor {
 public:
  LatencyMonitor(NodeCatalog& nodes, const LatencySettings& settings, Random& random, Instant now);

  // The nodes to ping now: one of each host, drawn anew each interval; those of unmeasured hosts at once.
  [[nodiscard]] std::vector<std::string> tick(Instant now);
  [[nodiscard]] Instant next_tick() const { return next_; }

  // The answer of `node` came after `elapsed`.
  void on_pong(std::string_view node, Duration elapsed);
  // A node came or came back.
  void on_node_connected(std::string_view node, Instant now);

 private:
  struct Host {
    std::deque<double> round_trips_ms;  // The latest last.
    double average_ms = 0;
  };
  [[nodiscard]] static const std::string& host_of(const Node& node) {
    return node.hostname.empty() ? node.id : node.hostname;
  }
  void publish(const std::string& host_name, double average_ms);

  NodeCatalog& nodes_;
  LatencySettings settings_;
  Random& random_;
  std::map<std::string, Host, std::less<>> hosts_;  // Those with measured round trips.
  Instant next_period_;
  Instant next_;  // The next period, or now for a host that is new.
};

}  // namespace weft
