#include <algorithm>
#include <cmath>

#include "broker/gossip/gossip.h"
#include "tests/unit/broker/gossip/mesh.h"

namespace weft::test {

namespace {

Value services_named(const ServiceNames& names) {
  Value services = Value::array();
  for (const std::string& name : names) {
    services.push_back(Value{{"name", name}, {"fullName", name}, {"actions", Value::object()}});
  }
  return services;
}

ServiceNames names_of(const Value& services) {
  ServiceNames names;
  for (const Value& service : services.items()) names.emplace_back(service["name"].str());
  return names;
}

// Keeps its view by Gossip's outputs alone, as a registry does.
class WeftNode final : public MeshNode {
 public:
  explicit WeftNode(const MeshNodeConfig& config)
      : catalog_(config.id, config.instance_id),
        random_(config.seed),
        gossip_(catalog_, {.period = config.period}, random_) {
    Node& self = catalog_.self();
    self.hostname = "host";
    self.ip_list = {"127.0.0.1"};
    self.port = config.port;
  }

  void start(Instant now) override { gossip_.start(now); }
  Value hello() const override { return gossip_.hello(); }
  void receive(PacketType type, std::string_view sender, const Value& body, std::string_view remote_host,
               Instant now) override {
    gossip_.receive(type, sender, body, remote_host, now);
  }
  void sighted(const std::string& id, const SocketAddress& address, Instant now) override {
    gossip_.sighted(id, address, Gossip::Sighting::kListed, now);
  }
  void lost(const std::string& id, bool unexpected, Instant now) override {
    gossip_.node_lost(id, unexpected, now);
  }
  void set_services(const ServiceNames& names, Instant now) override {
    catalog_.self().services = services_named(names);
    ++catalog_.self().seq;
    gossip_.local_changed(now);
  }
  void tick(Instant now) override { gossip_.tick(now); }
  Instant next_tick() const override { return gossip_.next_tick(); }

  std::vector<Packet> take_packets() override {
    std::vector<Packet> packets;
    for (Gossip::Output& output : gossip_.take_output()) {
      if (auto* send = std::get_if<Gossip::Send>(&output)) {
        for (const std::string& to : send->nodes) packets.push_back({to, send->type, send->body});
      } else if (auto* learn = std::get_if<Gossip::LearnAddress>(&output)) {
        addresses_[learn->node] = learn->address;
      } else if (auto* applied = std::get_if<Gossip::InfoApplied>(&output)) {
        const Node& node = *applied->outcome.node;
        if (applied->outcome.services_changed) view_[node.id] = names_of(node.services);
      } else if (auto* offline = std::get_if<Gossip::WentOffline>(&output)) {
        view_.erase(offline->node->id);
      }
    }
    return packets;
  }
  SocketAddress address_of(const std::string& id) const override { return addresses_.at(id); }
  View view() const override { return view_; }

 private:
  NodeCatalog catalog_;
  SeededRandom random_;
  Gossip gossip_;
  std::map<std::string, SocketAddress> addresses_;
  View view_;
};

// The rules 3.6–3.9 of the wire reference, their faults included.
class MoleculerNode final : public MeshNode {
 public:
  explicit MoleculerNode(const MeshNodeConfig& config)
      : id_(config.id), period_(config.period), random_(config.seed) {
    Known& self = nodes_[id_];
    self.available = true;
    self.seq = 1;
    self.address = {"127.0.0.1", config.port};
    self.info = {{"ipList", arr("127.0.0.1")},
                 {"hostname", "127.0.0.1"},
                 {"instanceID", config.instance_id},
                 {"client", Value::object()},
                 {"config", Value::object()},
                 {"port", config.port},
                 {"seq", 1},
                 {"metadata", Value::object()},
                 {"services", Value::array()}};
  }

  void start(Instant now) override { next_ = now + period_; }
  Value hello() const override {
    const SocketAddress& address = nodes_.at(id_).address;
    return {{"host", address.host}, {"port", address.port}};
  }

  void receive(PacketType type, std::string_view sender, const Value& body, std::string_view remote_host,
               Instant) override {
    const std::string from(sender);
    if (type == PacketType::kGossipHello) {
      Known& node = nodes_[from];
      if (!node.address.valid()) {
        node.address = {std::string(remote_host), static_cast<std::uint16_t>(body["port"].i64())};
      }
    } else if (type == PacketType::kGossipRequest) {
      if (nodes_.contains(from)) on_request(from, body);
    } else {
      on_response(body);
    }
  }
  void sighted(const std::string& id, const SocketAddress& address, Instant) override {
    nodes_[id].address = address;
  }
  void lost(const std::string& id, bool, Instant) override {
    if (nodes_.contains(id)) mark_offline(nodes_[id]);
  }
  void set_services(const ServiceNames& names, Instant) override {
    Known& self = nodes_[id_];
    self.info.set("services", services_named(names));
    self.info.set("seq", ++self.seq);
  }

  void tick(Instant now) override {
    next_ = now + period_;
    std::vector<std::string> online, offline;
    for (const auto& [id, node] : nodes_) {
      if (id != id_) (node.available ? online : offline).push_back(id);
    }
    if (!online.empty()) send_request(online[random_.below(online.size())]);
    const double likelihood = static_cast<double>(offline.size()) / static_cast<double>(online.size() + 1);
    if (!offline.empty() && random_.uniform() < likelihood)
      send_request(offline[random_.below(offline.size())]);
  }
  Instant next_tick() const override { return next_; }
  std::vector<Packet> take_packets() override { return std::exchange(packets_, {}); }
  SocketAddress address_of(const std::string& id) const override { return nodes_.at(id).address; }
  View view() const override {
    View view;
    for (const auto& [id, node] : nodes_) {
      if (id != id_ && node.available) view[id] = names_of(node.info["services"]);
    }
    return view;
  }

 private:
  struct Known {
    bool available = false;
    std::uint64_t seq = 0;
    std::uint64_t cpu_seq = 0;
    Value cpu = 0;
    SocketAddress address;
    Value info;
  };

  static void mark_offline(Known& node) {
    if (node.available) ++node.seq;
    node.available = false;
  }

  void send_request(const std::string& to) {
    Value online = Value::object();
    Value offline = Value::object();
    for (const auto& [id, node] : nodes_) {
      if (node.available) {
        online.set(id, arr(node.seq, node.cpu_seq, node.cpu));
      } else if (node.seq > 0) {
        offline.set(id, node.seq);
      }
    }
    packets_.push_back({to, PacketType::kGossipRequest, {{"online", online}, {"offline", offline}}});
  }

  void on_request(const std::string& from, const Value& body) {
    Value online = Value::object();
    Value offline = Value::object();
    for (auto& [id, node] : nodes_) {
      const Value& dead = body["offline"][id];
      const Value& alive = body["online"][id];
      const bool is_listed = !dead.is_null() || !alive.is_null();
      const std::uint64_t seq = !dead.is_null() ? dead.u64() : (is_listed ? alive[0].u64() : 0);
      if (!is_listed || seq < node.seq) {
        if (node.available) {
          online.set(id, arr(node.info, node.cpu_seq, node.cpu));
        } else {
          offline.set(id, node.seq);
        }
      } else if (!dead.is_null() && id == id_) {
        node.seq = seq + 1;
        node.info.set("seq", node.seq);
        online.set(id, arr(node.info, node.cpu_seq, node.cpu));
      } else if (!dead.is_null()) {
        mark_offline(node);
        node.seq = seq;
      } else if (node.available && alive[1].u64() < node.cpu_seq) {
        online.set(id, arr(node.cpu_seq, node.cpu));
      }
    }
    if (!online.empty() || !offline.empty()) {
      packets_.push_back({from, PacketType::kGossipResponse, {{"online", online}, {"offline", offline}}});
    }
  }

  void on_response(const Value& body) {
    for (const Member& row : body["online"].members()) {
      if (row.key == id_ || !row.value[0].is_object()) continue;
      const Value& info = row.value[0];
      Known& node = nodes_[row.key];
      if (info["seq"].u64() <= node.seq) continue;
      node.available = true;
      node.seq = info["seq"].u64();
      node.info = info;
      if (!node.address.valid()) {
        node.address = {std::string(info["hostname"].str()), static_cast<std::uint16_t>(info["port"].i64())};
      }
    }
    for (const Member& row : body["offline"].members()) {
      const auto node = nodes_.find(row.key);
      if (row.key == id_ || node == nodes_.end() || row.value.u64() <= node->second.seq) continue;
      mark_offline(node->second);
      node->second.seq = row.value.u64();
    }
  }

  std::string id_;
  Duration period_;
  SeededRandom random_;
  Instant next_ = kNever;
  std::map<std::string, Known> nodes_;
  std::vector<Packet> packets_;
};

}  // namespace

std::unique_ptr<MeshNode> make_weft_node(const MeshNodeConfig& config) {
  return std::make_unique<WeftNode>(config);
}
std::unique_ptr<MeshNode> make_moleculer_node(const MeshNodeConfig& config) {
  return std::make_unique<MoleculerNode>(config);
}

}  // namespace weft::test
