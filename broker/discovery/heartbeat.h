#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "broker/registry/node_catalog.h"
#include "lib/random/random.h"
#include "lib/time/clock.h"

namespace weft {

struct HeartbeatSettings {
  Duration interval = std::chrono::seconds(10);             // 0: no heartbeats, no timeouts, no clean-up.
  Duration timeout = std::chrono::seconds(30);              // Silence after which a node is gone.
  Duration clean_offline_nodes = std::chrono::minutes(10);  // Silence after which it is forgotten; 0: never.
};

// Liveness over a bus: when to beat, who has fallen silent, whom to ask for an INFO.
//
// Feed it with heartbeats and time, and carry out take_output(). It notes heartbeats and loads in the
// catalog; that a node is gone is the owner's to carry out. An INFO is no heartbeat: the catalog counts it as
// one only for a node that was offline. Thread: loop thread only.
class HeartbeatMonitor {
 public:
  struct Output {
    bool send_heartbeat = false;
    std::vector<std::string> discover;   // Ask these nodes for their INFO.
    std::vector<std::string> timed_out;  // Silent for too long: gone, and unexpectedly so.
    std::vector<std::string> forget;     // Offline for too long to remember.
  };

  // The first beat comes within one interval, at random, so that nodes started together do not beat together;
  // the others in an interval of this node's own, up to half a second longer or shorter.
  HeartbeatMonitor(NodeCatalog& nodes, const HeartbeatSettings& settings, Random& random, Instant now);

  // A HEARTBEAT. Of an unknown or offline node, or with another seq or instance than is known, it is a reason
  // to ask for the INFO and not a sign of life.
  void receive(std::string_view sender, const Value& body, Instant now);
  void tick(Instant now);
  // When tick() has something to do; kNever with an interval of 0.
  [[nodiscard]] Instant next_tick() const;
  [[nodiscard]] Output take_output();

 private:
  void ask(std::string_view node, Instant now);
  void check(Instant now);

  NodeCatalog& nodes_;
  HeartbeatSettings settings_;
  Duration beat_period_{};
  Duration check_period_{};
  Instant next_beat_ = kNever;
  Instant next_check_ = kNever;
  bool check_put_off_ = false;                         // The last one was; it is not twice in a row.
  std::map<std::string, Instant, std::less<>> asked_;  // When a node was asked last.
  Output output_;
};

}  // namespace weft
