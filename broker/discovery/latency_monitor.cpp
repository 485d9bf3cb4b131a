#include "broker/discovery/latency_monitor.h"

#include <algorithm>
#include <numeric>

namespace weft {

LatencyMonitor::LatencyMonitor(NodeCatalog& nodes, const LatencySettings& settings, Random& random,
                               Instant now)
    : nodes_(nodes), settings_(settings), random_(random), next_period_(now), next_(now) {}

std::vector<std::string> LatencyMonitor::tick(Instant now) {
  if (now < next_) return {};
  const bool is_period = now >= next_period_;
  if (is_period) next_period_ = now + settings_.ping_interval;
  next_ = next_period_;

  struct Candidates {
    const Node* chosen = nullptr;
    std::size_t count = 0;
  };
  std::map<std::string_view, Candidates> by_host;
  nodes_.for_each([&](const Node& node) {
    if (node.local || !node.available) return;
    Candidates& host = by_host[host_of(node)];
    // Each of k nodes stays chosen with probability 1/k.
    if (random_.below(++host.count) == 0) host.chosen = &node;
  });
  std::erase_if(hosts_, [&](const auto& host) { return !by_host.contains(host.first); });
  std::vector<std::string> pings;
  for (const auto& [name, host] : by_host) {
    if (is_period || !hosts_.contains(name)) pings.push_back(host.chosen->id);
  }
  return pings;
}

void LatencyMonitor::on_pong(std::string_view node_id, Duration elapsed) {
  const Node* node = nodes_.find(node_id);
  if (node == nullptr || node->local || !node->available) return;
  const std::string& name = host_of(*node);
  Host& host = hosts_[name];
  host.round_trips_ms.push_back(std::max(to_ms(elapsed), 0.0));
  if (host.round_trips_ms.size() > settings_.collect_count) host.round_trips_ms.pop_front();
  host.average_ms = std::accumulate(host.round_trips_ms.begin(), host.round_trips_ms.end(), 0.0) /
                    static_cast<double>(host.round_trips_ms.size());
  publish(name, host.average_ms);
}

void LatencyMonitor::on_node_connected(std::string_view node_id, Instant now) {
  Node* node = nodes_.find(node_id);
  if (node == nullptr || node->local) return;
  const auto host = hosts_.find(host_of(*node));
  node->latency_ms.reset();
  if (host != hosts_.end()) {
    node->latency_ms = host->second.average_ms;
  } else {
    next_ = std::min(next_, now);
  }
}

void LatencyMonitor::publish(const std::string& host_name, double average_ms) {
  nodes_.for_each([&](const Node& node) {
    if (host_of(node) == host_name) nodes_.find(node.id)->latency_ms = average_ms;
  });
}

}  // namespace weft
