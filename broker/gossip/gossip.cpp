#include "broker/gossip/gossip.h"

#include <algorithm>
#include <array>
#include <utility>

#include "broker/gossip/gossip_answer.h"

namespace weft {

namespace {

// Dual-stack sockets show IPv4 peers as ::ffff:a.b.c.d.
std::string_view plain_ip(std::string_view host) {
  constexpr std::string_view kMapped = "::ffff:";
  const bool is_mapped = host.starts_with(kMapped) && host.find('.') != std::string_view::npos;
  return is_mapped ? host.substr(kMapped.size()) : host;
}

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host == "::1";
}

constexpr std::size_t kHostBytesMax = 256;
// A packet with more news than this is somebody catching us up: the others know it all.
constexpr std::size_t kRumoursMax = 3;

}  // namespace

Gossip::Gossip(NodeCatalog& catalog, const GossipOptions& options, Random& random)
    : catalog_(catalog), options_(options), random_(random) {}

Value Gossip::hello() const {
  const Node& self = catalog_.self();
  return {{"host", address_of(self).host}, {"port", self.port}};
}

void Gossip::receive(PacketType type, std::string_view sender, const Value& body,
                     std::string_view remote_host, Instant now) {
  if (!is_node_id(sender) || sender == catalog_.self().id) {
    ++stats_.packets_ignored;
    return;
  }
  Node* node = catalog_.find(sender);
  if (type == PacketType::kGossipHello) {
    receive_hello(node, sender, body, remote_host, now);
  } else if (type == PacketType::kGossipRequest && node != nullptr) {
    receive_request(*node, body, now);
  } else if (type == PacketType::kGossipResponse) {
    receive_response(sender, body, now);
  } else {
    ++stats_.packets_ignored;  // A request without a HELLO before: there is nowhere to send the answer.
  }
  finish(now);
}

void Gossip::receive_hello(Node* node, std::string_view sender, const Value& body,
                           std::string_view remote_host, Instant now) {
  const std::int64_t port = body["port"].i64_or(0);
  const std::string_view host = body["host"].str_or({});
  // Where a connection comes from is where its node is dialled, but for one that listens on its loopback
  // alone: such a connection may leave by another interface of the host.
  const std::string_view remote = is_loopback(host) ? host : plain_ip(remote_host);
  if (port < 1 || port > 65535 || host.size() > kHostBytesMax || (host.empty() && remote.empty())) {
    ++stats_.packets_ignored;
    return;
  }
  if (node == nullptr) {
    node = find_or_sight(sender, now);
    if (node == nullptr) {
      ++stats_.packets_ignored;
      return;
    }
    node->hostname = host.empty() ? remote : host;
    node->ip_list = {std::string(remote.empty() ? host : remote)};
  }
  // Who listens elsewhere now is another process, even if the end of the old one went unnoticed.
  const bool is_other = node->available && node->port != 0 && node->port != port;
  if (!node->available || is_other) {
    node->port = static_cast<std::uint16_t>(port);
    if (!remote.empty()) see_at(*node, remote);
  } else if (node->udp_address.empty()) {
    node->udp_address = remote;
  }
  peer(*node).learned = {};  // Told anew: who greets us listens, even if it refused us a moment ago.
  learn_address(*node);
  if (is_other) {
    go_offline(*node, true, now);
  } else if (!node->available) {
    contact(*node, Reason::kOffline, now);
  }
}

void Gossip::sighted(std::string_view id, const SocketAddress& address, Sighting kind, Instant now) {
  if (!is_node_id(id) || id == catalog_.self().id || !address.valid() ||
      address.host.size() > kHostBytesMax) {
    ++stats_.packets_ignored;
    return;
  }
  const bool is_new = catalog_.find(id) == nullptr;
  Node* node = find_or_sight(id, now);
  if (node == nullptr) {
    ++stats_.packets_ignored;
    return;
  }
  Peer& known = peer(*node);
  if (kind == Sighting::kListed) known.listed = true;
  if (node->available) {
    if (node->udp_address.empty()) node->udp_address = address.host;
    learn_address(*node);
  } else {
    // A node is seen at several addresses at once when it has several interfaces: while one is being tried,
    // it stays.
    const bool trying = known.contacted && !known.failed_since &&
                        now - *known.contacted < std::chrono::seconds(1) && node->port == address.port;
    if (is_new || !trying) {
      node->hostname = address.host;
      node->ip_list = {address.host};
      see_at(*node, address.host);
      node->port = address.port;
    }
    learn_address(*node);
    // In a large mesh everybody sees the newcomer's datagram at once; one after the other is soon enough.
    constexpr std::size_t kCrowd = 16;
    Duration delay{};
    if (kind == Sighting::kAnnounced && catalog_.size() > kCrowd) {
      delay = std::chrono::milliseconds(random_.below(2 * catalog_.size()));
    }
    contact(*node, Reason::kOffline, now, std::min(delay, options_.period));
  }
  finish(now);
}

void Gossip::receive_request(Node& requester, const Value& body, Instant now) {
  const GossipDigest digest(body, options_.nodes_max);
  stats_.rows_ignored += digest.ignored();
  Answer answer({requester.id}, options_.packet_bytes_max, output_);
  const bool is_partial = body["partial"].boolean_or(false);
  catalog_.for_each([&](const Node& seen) {
    Node& node = *catalog_.find(seen.id);
    const GossipDigest::Row* row = digest.find(node.id);
    if (row != nullptr || !is_partial || node.local) compare(node, row, requester, answer, now);
  });
  answer.send();
  const auto is_unknown = [&](const auto& row) {
    return row.second.online && catalog_.find(row.first) == nullptr;
  };
  if (std::any_of(digest.rows().begin(), digest.rows().end(), is_unknown) && has_room(now)) {
    contact(requester, Reason::kNews, now);
  }
  if (!requester.available) contact(requester, Reason::kOffline, now);  // It speaks: it is back.
}

void Gossip::compare(Node& node, const GossipDigest::Row* row, Node& requester, Answer& answer, Instant now) {
  if (node.local) {
    compare_self(row, requester.id, answer);
    return;
  }
  const bool is_requester = &node == &requester;
  if (row == nullptr || row->seq < node.seq) {
    if (is_requester) {
      // It says less of itself than is known of it, so it began anew: our request lets it catch up. Rows
      // about the receiver are ignored, so it is sent none.
      if (row != nullptr && node.available) contact(requester, Reason::kNews, now);
    } else if (node.available) {
      answer.online(node.id, info_row_of(node));
    } else if (node.seq > 0) {
      answer.offline(node.id, node.seq);
    }
    return;
  }
  if (!row->online) {
    if (weave_decides(node, requester)) return;
    if (is_vouched_for(node)) return;  // It will hear of it from those who believe it, and refute it.
    if (node.available) go_offline(node, false, now);
    node.seq = row->seq;
    return;
  }
  // Newer than ours: fetched at once instead of by chance. (A requester that is offline here is asked
  // anyway.)
  if (row->seq > node.seq && !(is_requester && !node.available)) contact(requester, Reason::kNews, now);
  if (!node.available) return;
  if (row->cpu.seq > node.cpu_seq) {
    take_cpu(node, row->cpu);
  } else if (row->cpu.seq < node.cpu_seq && !is_requester) {
    answer.online(node.id, cpu_row_of(node));
  }
}

void Gossip::compare_self(const GossipDigest::Row* row, std::string_view requester, Answer& answer) {
  if (held_back_) return;
  Node& self = catalog_.self();
  // Somebody thinks us dead, or remembers more of an earlier life of this node than we do: only a larger
  // number convinces the others.
  if (row != nullptr && (row->online ? row->seq > self.seq : row->seq >= self.seq)) {
    self.seq = row->seq + 1;
    ++stats_.rumours_refuted;
    output_.push_back(SelfSeqRaised{self.seq});
    answer.online(self.id, info_row_of(self));
    spread(self.id, requester);
    return;
  }
  if (row == nullptr || row->seq < self.seq) {
    answer.online(self.id, info_row_of(self));
    return;
  }
  if (row->cpu.seq > self.cpu_seq) self.cpu_seq = row->cpu.seq + (self.cpu ? 1 : 0);  // An earlier life's.
  if (row->cpu.seq < self.cpu_seq) answer.online(self.id, cpu_row_of(self));
}

void Gossip::receive_response(std::string_view sender, const Value& body, Instant now) {
  std::size_t rows = 0;
  std::vector<std::string_view> changed;
  const auto takes = [&](std::string_view id) {
    if (is_node_id(id) && ++rows <= options_.nodes_max) return true;
    ++stats_.rows_ignored;
    return false;
  };
  for (const Member& member : body["online"].members()) {
    if (!takes(member.key) || member.key == catalog_.self().id) continue;
    const auto news = read_news(member.value);
    if (!news) {
      ++stats_.rows_ignored;
      continue;
    }
    if (news->info != nullptr && take_info(member.key, *news, sender, now)) changed.push_back(member.key);
    Node* node = catalog_.find(member.key);
    if (news->cpu && node != nullptr && node->available && news->cpu->seq > node->cpu_seq) {
      take_cpu(*node, *news->cpu);
    }
  }
  for (const Member& member : body["offline"].members()) {
    if (!takes(member.key) || member.key == catalog_.self().id) continue;
    const auto seq = read_seq(member.value);
    if (!seq) ++stats_.rows_ignored;
    Node* node = catalog_.find(member.key);
    if (!seq || node == nullptr || *seq <= node->seq || is_vouched_for(*node)) continue;
    if (const Node* teller = catalog_.find(sender); teller != nullptr && weave_decides(*node, *teller))
      continue;
    if (node->available) {
      go_offline(*node, false, now);
      changed.push_back(member.key);
    }
    node->seq = *seq;
  }
  if (changed.size() > kRumoursMax) return;
  for (const std::string_view id : changed) spread(id, sender);
}

bool Gossip::take_info(std::string_view id, const GossipNews& news, std::string_view sender, Instant now) {
  Node* known = catalog_.find(id);
  if (known != nullptr && news.info_seq <= known->seq) {
    if (sender != id) return false;
    // Of a node's own word there are two that its number hides: it is another process than the one we knew,
    // or it is back. Our request names the number it has to raise its own above, and its answer counts.
    const std::string_view instance = (*news.info)["instanceID"].str_or({});
    const bool is_other = !instance.empty() && !known->instance_id.empty() && instance != known->instance_id;
    if (known->available && is_other) {
      go_offline(*known, true, now);
    } else if (!known->available) {
      contact(*known, Reason::kOffline, now);
    }
    return false;
  }
  if (known == nullptr && !has_room(now)) {
    ++stats_.rows_ignored;
    return false;
  }
  // What has a larger number always brings a new list.
  Value replaced = known != nullptr ? std::move(known->services) : Value::array();
  const InfoOutcome outcome = catalog_.apply_info(id, *news.info, now);
  peer(*outcome.node).failures = 0;
  output_.push_back(InfoApplied{outcome, std::move(replaced)});
  learn_address(*outcome.node);
  return true;
}

void Gossip::weave_learned(std::string_view id, std::uint64_t number, const Value* info, Instant now) {
  Node* known = catalog_.find(id);
  const bool is_stale = known != nullptr && (known->local || (known->available && number <= known->seq));
  if (is_stale || number > kSeqMax) return;
  if (info == nullptr && (known == nullptr || known->seq == 0)) {  // It was forgotten here.
    if (known != nullptr) contact(*known, Reason::kNews, now);
    return finish(now);
  }
  if (known == nullptr && !has_room(now)) {
    ++stats_.rows_ignored;
    return;
  }
  Value renumbered = info != nullptr ? *info : info_of(*known);
  renumbered.set("seq", number);
  const InfoOutcome outcome = catalog_.apply_info(id, renumbered, now);
  peer(*outcome.node).failures = 0;
  output_.push_back(InfoApplied{outcome});
  learn_address(*outcome.node);
  spread(id, id);
  finish(now);
}

void Gossip::weave_gone(std::string_view id, std::uint64_t number, Instant now) {
  Node* node = catalog_.find(id);
  if (node == nullptr || node->local) return;
  if (node->available && number > node->seq) {
    catalog_.mark_offline(*node, now);
    peer(*node).failures = 0;
    output_.push_back(WentOffline{node, !node->services.empty()});  // Who leaves has announced an empty list.
    spread(id, id);
  }
  node->seq = std::max(node->seq, number);
  finish(now);
}

bool Gossip::in_weave(const Node& node) const {
  return options_.weave && node.client["weave"].i64_or(0) == 1;
}

// That one node of the weave cannot reach another is no word on whether it lives.
bool Gossip::weave_decides(const Node& node, const Node& teller) const {
  return node.available && in_weave(node) && in_weave(teller);
}

void Gossip::take_cpu(Node& node, const CpuRow& row) {
  node.cpu_seq = row.seq;
  node.cpu = row.percent;
}

void Gossip::node_lost(std::string_view id, bool unexpected, Instant now) {
  Node* node = catalog_.find(id);
  if (node == nullptr || node->local) return;
  Peer& lost = peer(*node);
  lost.failed_since = true;
  if (node->available) {
    go_offline(*node, unexpected, now);
  } else {
    ++lost.failures;
    ++lost.turn;
    learn_address(*node);
    // A broken link alone says little; that it cannot be made again is worth telling.
    if (lost.failures == 1 && node->seq > 0) spread(id, id);
  }
  finish(now);
}

void Gossip::node_hung(std::string_view id, Instant now) {
  Node* node = catalog_.find(id);
  if (node == nullptr || node->local || !node->available) return;
  go_offline(*node, true, now);
  spread(id, id);  // Nothing more will show than that it was silent.
  finish(now);
}

void Gossip::go_offline(Node& node, bool unexpected, Instant now) {
  catalog_.mark_offline(node, now);
  peer(node).failures = 0;
  output_.push_back(WentOffline{&node, unexpected});
  contact(node, Reason::kOffline, now);  // If it lives it says so at once.
}

Node* Gossip::find_or_sight(std::string_view id, Instant now) {
  if (Node* known = catalog_.find(id)) return known;
  return has_room(now) ? &catalog_.sight(id, now) : nullptr;
}

bool Gossip::has_room(Instant now) {
  if (catalog_.size() < options_.nodes_max) return true;
  if (full_until_ && now < *full_until_) return false;
  forget_offline_since(now - std::chrono::minutes(1));
  if (catalog_.size() < options_.nodes_max) return true;
  full_until_ = now + std::chrono::seconds(1);
  return false;
}

void Gossip::forget_offline_since(Instant latest) {
  std::vector<std::string> ids;
  catalog_.for_each([&](const Node& node) {
    if (node.local || node.available || !node.offline_since || *node.offline_since > latest) return;
    const auto found = peers_.find(node.id);
    if (found == peers_.end() || !found->second.listed) ids.push_back(node.id);
  });
  for (std::string& id : ids) {
    catalog_.forget(id);
    peers_.erase(id);
    news_.erase(id);
    to_contact_.erase(id);
    output_.push_back(Forgotten{std::move(id)});
  }
}

void Gossip::see_at(Node& node, std::string_view host) {
  node.udp_address = host;
  peer(node).turn = 0;
}

SocketAddress Gossip::address_of(const Node& node) const {
  // Where it was seen, by its host's name, at its first address: the one that does not lead to it gives way
  // to the next.
  std::array<std::string_view, 3> hosts;
  std::size_t count = 0;
  const auto add = [&](std::string_view host) {
    if (!host.empty() && std::find(hosts.begin(), hosts.begin() + count, host) == hosts.begin() + count)
      hosts[count++] = host;
  };
  add(node.udp_address);
  if (options_.use_hostname) add(node.hostname);
  if (!node.ip_list.empty()) add(node.ip_list.front());
  if (count == 0) return {{}, node.port};
  const auto found = peers_.find(node.id);
  const std::size_t turn = found == peers_.end() ? 0 : found->second.turn;
  return {std::string(hosts[turn % count]), node.port};
}

void Gossip::learn_address(const Node& node) {
  SocketAddress address = address_of(node);
  Peer& known = peer(node);
  if (!address.valid() || address == known.learned) return;
  known.learned = address;
  output_.push_back(LearnAddress{node.id, std::move(address)});
}

}  // namespace weft
