#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/net/network.h"
#include "lib/protocol/packet.h"
#include "lib/time/clock.h"
#include "lib/value/value.h"

namespace weft::test {

using ServiceNames = std::vector<std::string>;
// What a node believes: each other node that is online, with its services.
using View = std::map<std::string, ServiceNames>;

// One process of a peer to peer mesh, as far as gossip goes.
class MeshNode {
 public:
  struct Packet {
    std::string to;
    PacketType type;
    Value body;
  };

  virtual ~MeshNode() = default;
  virtual void start(Instant now) = 0;
  [[nodiscard]] virtual Value hello() const = 0;
  virtual void receive(PacketType type, std::string_view sender, const Value& body,
                       std::string_view remote_host, Instant now) = 0;
  virtual void sighted(const std::string& id, const SocketAddress& address, Instant now) = 0;
  virtual void lost(const std::string& id, bool unexpected, Instant now) = 0;
  virtual void set_services(const ServiceNames& names, Instant now) = 0;
  virtual void tick(Instant now) = 0;
  [[nodiscard]] virtual Instant next_tick() const = 0;
  [[nodiscard]] virtual std::vector<Packet> take_packets() = 0;
  [[nodiscard]] virtual SocketAddress address_of(const std::string& id) const = 0;
  [[nodiscard]] virtual View view() const = 0;
};

// A node of weft, and one that keeps to Moleculer's rules as the reference tells them.
struct MeshNodeConfig {
  std::string id;
  std::string instance_id;
  std::uint16_t port = 0;
  Duration period = std::chrono::seconds(1);
  std::uint64_t seed = 1;
};
[[nodiscard]] std::unique_ptr<MeshNode> make_weft_node(const MeshNodeConfig& config);
[[nodiscard]] std::unique_ptr<MeshNode> make_moleculer_node(const MeshNodeConfig& config);

// Nodes on one wire with a clock of its own: a packet takes a millisecond and passes through JSON, the first
// on each link has a HELLO before it, and the end of a process is seen as the end of its links.
class Mesh {
 public:
  enum class Kind { kWeft, kMoleculer };

  explicit Mesh(Duration period = std::chrono::seconds(1)) : period_(period) {}

  // Starts a process under a name that is free or whose process has crashed; its port stays the same.
  MeshNode& start(const std::string& id, Kind kind, const ServiceNames& services);
  MeshNode& start(const std::string& id, const ServiceNames& services = {}) {
    return start(id, Kind::kWeft, services);
  }
  void crash(const std::string& id);
  // `who` hears that `id` listens where it does.
  void sight(const std::string& who, const std::string& id);
  void set_services(const std::string& id, const ServiceNames& services);
  // Delivers a packet that nobody of the mesh has sent.
  void inject(const std::string& to, PacketType type, std::string_view sender, const Value& body);

  void run_for(Duration span);
  // Runs until `done`, at most for `limit`. The time it took, or nothing.
  [[nodiscard]] std::optional<Duration> run_until(const std::function<bool()>& done, Duration limit);

  [[nodiscard]] MeshNode& node(const std::string& id) { return *nodes_.at(id).process; }
  [[nodiscard]] bool sees(const std::string& who, const std::string& id, const ServiceNames& services) const;
  // Whether each running node sees all others as they are, and nobody else.
  [[nodiscard]] bool converged() const;
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::size_t packets(PacketType type) const;
  // Every packet that was delivered, for tests that look closer.
  struct Delivery {
    Instant at;
    std::string from;
    std::string to;
    PacketType type;
    Value body;
  };
  [[nodiscard]] const std::vector<Delivery>& deliveries() const { return deliveries_; }

 private:
  struct Slot {
    std::unique_ptr<MeshNode> process;  // None after a crash.
    std::uint16_t port = 0;
    int incarnation = 0;
    ServiceNames services;
  };
  void send(const std::string& from, const MeshNode::Packet& packet);
  void deliver(const std::string& from, const std::string& to, PacketType type, const Value& body);
  void report_loss(const std::string& who, const std::string& lost, bool unexpected);
  void flush(const std::string& id);
  void at(Instant when, std::function<void()> what);

  static constexpr Duration kLatency = std::chrono::milliseconds(1);
  Duration period_;
  Instant now_{std::chrono::hours(1)};
  std::map<std::string, Slot> nodes_;
  std::set<std::pair<std::string, std::string>> links_;
  std::multimap<Instant, std::function<void()>> queue_;  // Of one time: in order of entry.
  std::vector<Delivery> deliveries_;
};

}  // namespace weft::test
