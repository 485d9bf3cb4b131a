#include "broker/discovery/gossip_discovery.h"

#include <algorithm>
#include <variant>

namespace weft {

namespace {

GossipOptions gossip_options(const GossipSettings& settings, bool weave, std::size_t nodes_max) {
  GossipOptions options;
  options.period = settings.period;
  options.use_hostname = settings.use_hostname;
  options.nodes_max = nodes_max;
  options.weave = weave;
  return options;
}

WeaveOptions weave_options(std::size_t nodes_max) {
  WeaveOptions options;
  options.nodes_max = nodes_max;
  return options;
}

// More nodes than this learned at once: that is catching up, and others know it all.
constexpr std::ptrdiff_t kNewsMax = 3;
// Who leaves has answered all it was asked; the answers may be on a longer way than the word that it leaves.
constexpr Duration kLeaveGrace = std::chrono::milliseconds(250);

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
      gossip_(parts_.membership.nodes(), gossip_options(parts_.options, parts_.weave, parts_.nodes_max),
              parts_.random) {
  gossip_.set_witness(parts_.heard_lately);
  if (!parts_.weave) return;
  Node& self = parts_.membership.nodes().self();
  self.client.set("weave", 1);
  weave_.emplace(self.id, self.instance_id, weave_options(parts_.nodes_max), parts_.random);
}

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
  if (weave_) weave_->start(parts_.loop.now());
  tell_weave_of_us();
  (void)parts_.system.cpu_percent();  // The first reading only starts the count.
  carry_out();
}

void GossipDiscovery::announce() {
  if (parts_.membership.nodes().self().services.empty()) {
    gossip_.leaving(parts_.loop.now());
  } else {
    gossip_.local_changed(parts_.loop.now());
  }
  tell_weave_of_us();
  carry_out();
}

void GossipDiscovery::tell_weave_of_us() {
  if (!weave_) return;
  const Node& self = parts_.membership.nodes().self();
  weave_->local_changed(self.seq, estimated_bytes(info_of(self)), parts_.loop.now());
}

void GossipDiscovery::stop(bool goodbye) {
  if (!stopped_ && goodbye && weave_) {
    weave_->leave(parts_.loop.now());
    carry_out();
  }
  stopped_ = true;
  timer_.cancel();
}

void GossipDiscovery::on_control(PacketType type, std::string_view sender, const Value& body,
                                 std::string_view remote_host) {
  if (stopped_ || type < PacketType::kGossipHello) return;  // INFO and its kin have no place here.
  if (type == PacketType::kGossipResponse && body.find("weft") != nullptr) {
    receive_weave(sender, body);
  } else {
    gossip_.set_held_back(weave_ && weave_->is_absent());
    gossip_.receive(type, sender, body, remote_host, parts_.loop.now());
  }
  carry_out();
}

void GossipDiscovery::receive_weave(std::string_view sender, const Value& body) {
  if (!weave_) return;
  Buffer bytes;
  if (!read_base64(body["weft"].str_or({}), bytes)) return;
  const Value& infos = body["infos"];
  infos_ = &infos;
  weave_->receive(sender, bytes.view(), infos.items().size(), parts_.loop.now());
  carry_out();
  infos_ = nullptr;
}

void GossipDiscovery::on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) {
  if (stopped_) return;
  gossip_.sighted(node, address, listed ? Gossip::Sighting::kListed : Gossip::Sighting::kAnnounced,
                  parts_.loop.now());
  carry_out();
}

void GossipDiscovery::on_node_lost(std::string_view id, bool refused) {
  if (stopped_) return;
  // Who leaves in good order has announced an empty list first.
  const Node* node = parts_.membership.nodes().find(id);
  const bool unexpected = node != nullptr && !node->services.empty();
  gossip_.node_lost(id, unexpected, parts_.loop.now());
  if (weave_) weave_->link_lost(id, refused, parts_.loop.now());
  carry_out();
}

void GossipDiscovery::on_node_hung(std::string_view id) {
  if (stopped_) return;
  gossip_.node_hung(id, parts_.loop.now());
  carry_out();
}

void GossipDiscovery::tick() {
  // The load since the last reading: read too often, it says nothing.
  if (parts_.loop.now() - last_cpu_reading_ >= parts_.options.period) {
    last_cpu_reading_ = parts_.loop.now();
    if (const int cpu = parts_.system.cpu_percent(); cpu >= 0) gossip_.local_cpu(cpu);
  }
  if (gossip_.next_tick() <= parts_.loop.now()) gossip_.tick(parts_.loop.now());
  if (weave_ && weave_->next_tick() <= parts_.loop.now()) weave_->tick(parts_.loop.now());
  while (!leaving_.empty() && leaving_.front().first <= parts_.loop.now()) {
    const Weave::Gone gone = std::move(leaving_.front().second);
    leaving_.pop_front();
    gossip_.weave_gone(gone.node, gone.number, parts_.loop.now());
  }
  carry_out();
}

void GossipDiscovery::carry_out(const Gossip::Output& output) {
  std::visit(Overloaded{[this](const Gossip::Send& send) {
                          for (const std::string& node : send.nodes) {
                            (void)parts_.sender.send_control(send.type, node, send.body);
                          }
                        },
                        [this](const Gossip::LearnAddress& learned) {
                          parts_.addresses.learn_address(learned.node, learned.address);
                        },
                        [this](const Gossip::InfoApplied& applied) { info_applied(applied.outcome); },
                        [this](const Gossip::WentOffline& gone) {
                          parts_.membership.went_offline(*gone.node, gone.unexpected);
                        },
                        [this](const Gossip::SelfSeqRaised& raised) {
                          parts_.log.info("Peers took this node for dead: it goes on as version ", raised.seq,
                                          ".");
                          tell_weave_of_us();
                        },
                        [this](const Gossip::Forgotten& forgotten) {
                          parts_.addresses.forget_node(forgotten.node);
                          if (weave_) weave_->forget(forgotten.node);
                        }},
             output);
}

void GossipDiscovery::info_applied(const InfoOutcome& outcome) {
  // Membership's listeners may do what changes the node again.
  const Node& node = *outcome.node;
  if (gossip_.in_weave(node)) {
    if (!from_weave_) {
      weave_->learn(node.id, node.seq, node.instance_id, estimated_bytes(node.services) + 200, is_news_,
                    parts_.loop.now());
    }
  } else if (weave_ && weave_->knows(node.id)) {
    weave_->forget(node.id);
  }
  parts_.membership.info_applied(outcome);
}

void GossipDiscovery::carry_out(const Weave::Output& output) {
  const Instant now = parts_.loop.now();
  std::visit(Overloaded{[this](const Weave::Send& send) { send_weave(send); },
                        [this, now](const Weave::Learned& learned) {
                          const Value* info = nullptr;
                          if (learned.info != Weave::kKnownInfo) {
                            if (infos_ == nullptr) return;
                            info = &(*infos_)[learned.info];
                            if (!info->is_object()) return;
                          }
                          gossip_.weave_learned(learned.node, learned.number, info, now);
                        },
                        [this, now](const Weave::Gone& gone) {
                          if (gone.left) {
                            leaving_.emplace_back(now + kLeaveGrace, gone);
                          } else {
                            gossip_.weave_gone(gone.node, gone.number, now);
                          }
                        },
                        [this, now](const Weave::Returned& returned) {
                          parts_.log.info("Peers took this node for dead: it goes on as version ",
                                          returned.number, ".");
                          Node& self = parts_.membership.nodes().self();
                          self.seq = std::max(self.seq, returned.number);
                          gossip_.local_changed(now);
                        }},
             output);
}

void GossipDiscovery::send_weave(const Weave::Send& send) {
  Buffer text;
  append_base64(send.bytes.view(), text);
  Value body{{"weft", text.view()}};
  if (!send.infos.empty()) {
    Value infos = Value::array();
    for (const std::string& id : send.infos) {
      const Node* node = parts_.membership.nodes().find(id);
      infos.push_back(node != nullptr ? info_of(*node) : Value());
    }
    body.set("infos", std::move(infos));
  }
  (void)parts_.sender.send_control(PacketType::kGossipResponse, send.node, std::move(body));
}

void GossipDiscovery::carry_out() {
  while (true) {
    const std::vector<Gossip::Output> outputs = gossip_.take_output();
    is_news_ = std::count_if(outputs.begin(), outputs.end(), [](const Gossip::Output& output) {
                 return std::holds_alternative<Gossip::InfoApplied>(output);
               }) <= kNewsMax;
    for (const Gossip::Output& output : outputs) carry_out(output);
    std::vector<Weave::Output> woven;
    if (weave_) woven = weave_->take_output();
    for (const Weave::Output& output : woven) {
      carry_out(output);
      from_weave_ = true;
      for (const Gossip::Output& each : gossip_.take_output()) carry_out(each);
      from_weave_ = false;
    }
    if (outputs.empty() && woven.empty()) break;
  }
  if (stopped_) return;
  Instant next = std::min(gossip_.next_tick(), weave_ ? weave_->next_tick() : kNever);
  if (!leaving_.empty()) next = std::min(next, leaving_.front().first);
  if (next != kNever) timer_.set(parts_.loop, next, [this] { tick(); });
}

}  // namespace weft
