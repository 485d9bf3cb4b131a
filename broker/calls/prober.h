#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "broker/registry/node_catalog.h"
#include "lib/time/clock.h"

namespace weft {

struct ProbeSettings {
  Duration interval = std::chrono::milliseconds(800);  // Silence after which a node is pinged.
  Duration timeout = std::chrono::seconds(1);          // A ping unanswered for so long: the node is hung.
  Duration give_up = std::chrono::seconds(10);         // Hung for so long: what it owes is lost.
};

// Finds nodes that hang: a frozen process keeps its connections and subscriptions, and only the answer to a
// ping shows that somebody is at home.
//
// Feed it with what is sent and heard and with time, and carry out take_output(). Watched are nodes that are
// known to answer pings (weft and Moleculer for JavaScript): those that were sent requests lately, and all
// others of a small mesh or, in a large one, the next few in the order of names, so that each is watched by
// somebody. Whoever misses an answer for a while says so; others ask for themselves, and nobody believes it
// unheard.
//
// Pure. A process that was held up itself blames nobody: the answers may lie in its own sockets. Thread: loop
// thread only.
class Prober {
 public:
  struct Output {
    std::vector<std::string> ping;       // Send these a PING.
    std::vector<std::string> suspected;  // Tell others that these are slow to answer.
    std::vector<std::string> hung;       // They are out of rotation until they answer.
    std::vector<std::string> lost;       // They have been hung for too long.
  };

  Prober(NodeCatalog& nodes, const ProbeSettings& settings) : nodes_(nodes), settings_(settings) {}

  // Begins, or begins again after the transporter was away: silence counts from now on.
  void start(Instant now);

  void on_asked(const Node& node, Instant now) { times_[&node].asked = now; }
  // A response, or a packet that is no request or event.
  void on_heard(const Node& node, Instant now) {
    Times& times = times_[&node];
    times.heard = times.spoke = now;
    times.link_ended = false;
  }
  // By its own word, no longer ago than a hung node would be known for one.
  [[nodiscard]] bool heard_lately(const Node& node, Instant now) const;
  // Another node says that `node` is slow to answer.
  void on_suspected(std::string_view node, Instant now);

  // `node` is offline though its link may stand: until it is back, its link ends, or its time is up.
  void on_hung(const Node& node, Instant now) { hung_.try_emplace(node.id, Hung{now, node.instance_id}); }
  [[nodiscard]] bool is_hung(std::string_view node) const { return hung_.contains(node); }
  // Its link has ended.
  void on_lost(std::string_view node);
  // Its link has ended, and nothing came from it since.
  [[nodiscard]] bool link_ended(const Node& node) const;
  // It is back. True if it was hung, and is another process now, which owes nothing.
  [[nodiscard]] bool on_back(const Node& node, Instant now);

  void tick(Instant now);
  [[nodiscard]] Instant next_tick() const { return next_tick_; }
  [[nodiscard]] Output take_output() { return std::exchange(output_, {}); }

  // Every node of a mesh with no more of them watches all others.
  static constexpr std::size_t kSmallMesh = 16;
  // In a larger one it watches so many, besides those it has to do with.
  static constexpr std::size_t kWatchedMin = 4;

 private:
  static constexpr Duration kTick = std::chrono::milliseconds(100);
  struct Times {
    Instant heard{};  // By its own word or another's.
    Instant spoke{};
    Instant asked{};
    bool link_ended = false;
  };
  struct Ping {
    Instant sent;
    bool told = false;  // Others know.
  };
  struct Hung {
    Instant since;
    std::string instance;
  };

  [[nodiscard]] Times times_of(const Node& node) const;
  [[nodiscard]] std::vector<const Node*> watched(Instant now) const;

  NodeCatalog& nodes_;
  ProbeSettings settings_;
  Instant started_{};
  Instant next_tick_{};
  // By address, for speed: every response counts. That of a forgotten node may be another's one day, who is
  // then heard of when it comes.
  std::unordered_map<const Node*, Times> times_;
  std::map<std::string, Ping, std::less<>> pings_;  // Unanswered, by node.
  std::map<std::string, Hung, std::less<>> hung_;
  Output output_;
};

}  // namespace weft
