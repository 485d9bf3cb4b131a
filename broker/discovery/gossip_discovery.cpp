#include "broker/discovery/gossip_discovery.h"

#include <variant>

namespace weft {

namespace {

GossipOptions gossip_options(const GossipSettings& settings, std::size_t nodes_max) {
  GossipOptions options;
  options.period = settings.period;
  options.use_hostname = settings.use_hostname;
  options.nodes_max = nodes_max;
  return options;
}

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;  // clang 14 does not find it by itself.

bool is_ip(std::string_view host) {
  return !host.empty() && (host.find(':') != host.npos || host.find_first_not_of("0123456789.") == host.npos);
}

}  // namespace

GossipDiscovery::GossipDiscovery(Parts parts)
    : parts_(std::move(parts)),
      gossip_(parts_.membership.nodes(), gossip_options(parts_.options, parts_.nodes_max), parts_.random) {}

void GossipDiscovery::start() {
  Node& self = parts_.membership.nodes().self();
  const SocketAddress own = parts_.addresses.listen_address();
  self.port = own.port;
  // A node that listens on one address alone is dialled there, whatever else its host has.
  if (is_ip(own.host)) {
    std::erase(self.ip_list, own.host);
    self.ip_list.insert(self.ip_list.begin(), own.host);
  }
  ++self.seq;
  Value hello = gossip_.hello();
  if (!own.host.empty()) hello.set("host", own.host);
  parts_.addresses.set_greeting(hello);
  gossip_.start(parts_.loop.now());
  (void)parts_.system.cpu_percent();  // The first reading only starts the count.
  carry_out();
}

void GossipDiscovery::announce() {
  gossip_.local_changed(parts_.loop.now());
  carry_out();
}

void GossipDiscovery::stop(bool) {
  stopped_ = true;
  timer_.cancel();
}

void GossipDiscovery::on_control(PacketType type, std::string_view sender, const Value& body,
                                 std::string_view remote_host) {
  if (stopped_ || type < PacketType::kGossipHello) return;  // INFO and its kin have no place here.
  gossip_.receive(type, sender, body, remote_host, parts_.loop.now());
  carry_out();
}

void GossipDiscovery::on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) {
  if (stopped_) return;
  gossip_.sighted(node, address, listed ? Gossip::Sighting::kListed : Gossip::Sighting::kAnnounced,
                  parts_.loop.now());
  carry_out();
}

void GossipDiscovery::on_node_lost(std::string_view id) {
  if (stopped_) return;
  // Who leaves in good order has announced an empty list first.
  const Node* node = parts_.membership.nodes().find(id);
  const bool unexpected = node != nullptr && !node->services.empty();
  gossip_.node_lost(id, unexpected, parts_.loop.now());
  carry_out();
}

void GossipDiscovery::tick() {
  // The load since the last reading: read too often, it says nothing.
  if (parts_.loop.now() - last_cpu_reading_ >= parts_.options.period) {
    last_cpu_reading_ = parts_.loop.now();
    if (const int cpu = parts_.system.cpu_percent(); cpu >= 0) gossip_.local_cpu(cpu);
  }
  gossip_.tick(parts_.loop.now());
  carry_out();
}

void GossipDiscovery::carry_out(const Gossip::Output& output) {
  std::visit(
      Overloaded{
          [this](const Gossip::Send& send) {
            for (const std::string& node : send.nodes) {
              (void)parts_.sender.send_control(send.type, node, send.body);
            }
          },
          [this](const Gossip::LearnAddress& learned) {
            parts_.addresses.learn_address(learned.node, learned.address);
          },
          [this](const Gossip::InfoApplied& applied) { parts_.membership.info_applied(applied.outcome); },
          [this](const Gossip::WentOffline& gone) {
            parts_.membership.went_offline(*gone.node, gone.unexpected);
          },
          [this](const Gossip::SelfSeqRaised& raised) {
            parts_.log.info("Peers took this node for dead: it goes on as version ", raised.seq, ".");
          },
          [this](const Gossip::Forgotten& forgotten) { parts_.addresses.forget_node(forgotten.node); }},
      output);
}

void GossipDiscovery::carry_out() {
  for (const Gossip::Output& output : gossip_.take_output()) carry_out(output);
  if (!stopped_ && gossip_.next_tick() != kNever)
    timer_.set(parts_.loop, gossip_.next_tick(), [this] { tick(); });
}

}  // namespace weft
