#include "transporters/tcp/udp_announcer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <utility>

#include "lib/net/own_host.h"
#include "transporters/tcp/announcement.h"

namespace weft {

namespace {

using namespace std::chrono_literals;

// From each of the first announcements to the next.
constexpr std::array<Duration, 3> kQuickPauses = {100ms, 200ms, 700ms};

// Between two answers to a process with our node ID, which announces itself a few times.
constexpr Duration kAnswerPause = 500ms;

bool is_wildcard(std::string_view host) {
  return host.empty() || host == "0.0.0.0" || host == "::";
}

}  // namespace

UdpAnnouncer::UdpAnnouncer(EventLoop& loop, Network& network, Logger log, const TcpOptions& options,
                           std::string name_space, std::string node, std::uint16_t port,
                           SightedCallback on_sighted)
    : loop_(loop),
      network_(network),
      log_(std::move(log)),
      options_(options),
      name_space_(std::move(name_space)),
      node_(std::move(node)),
      port_(port),
      datagram_(make_announcement(name_space_, node_, port)),
      on_sighted_(std::move(on_sighted)) {}
UdpAnnouncer::~UdpAnnouncer() = default;

bool UdpAnnouncer::start() {
  open_sockets();
  announce();
  return !multicast_.empty() || broadcast_ != nullptr;
}

// A node that listens on one address announces itself on that one alone: others could not reach it.
bool UdpAnnouncer::is_used(const InterfaceAddress& interface) const {
  if (!interface.is_ipv4) return false;
  if (!options_.udp_bind_address.empty()) return interface.address == options_.udp_bind_address;
  return is_wildcard(options_.host) || options_.host == interface.address ||
         (options_.host == "localhost" && interface.is_loopback);
}

void UdpAnnouncer::open_sockets() {
  std::vector<InterfaceAddress> interfaces = network_.interfaces();
  interfaces.erase(std::remove_if(interfaces.begin(), interfaces.end(),
                                  [this](const InterfaceAddress& each) { return !is_used(each); }),
                   interfaces.end());
  if (!options_.udp_multicast.empty()) {
    std::set<std::string> present;
    for (const InterfaceAddress& interface : interfaces) {
      present.insert(interface.address);
      if (!multicast_.contains(interface.address)) open_multicast(interface);
    }
    std::erase_if(multicast_, [&](const auto& each) { return !present.contains(each.first); });
  }
  broadcast_to_ = options_.udp_broadcast_addresses;
  if (options_.udp_broadcast && broadcast_to_.empty()) {
    for (const InterfaceAddress& interface : interfaces) broadcast_to_.push_back(interface.broadcast);
  }
  if (!broadcast_to_.empty() && broadcast_ == nullptr) open_broadcast();
}

void UdpAnnouncer::open_multicast(const InterfaceAddress& interface) {
  DatagramOptions options;
  // Not bound to the interface's address: a socket that is hears no multicast.
  options.bind = {"0.0.0.0", options_.udp_port};
  options.reuse_address = options_.udp_reuse_addr;
  options.multicast_group = options_.udp_multicast;
  options.interface_address = interface.address;
  options.multicast_ttl = options_.udp_multicast_ttl;
  auto socket = network_.open_datagram(options, receiver());
  if (!socket.ok()) {
    log_.debug("no multicast on ", interface.name, " (", interface.address, "): ", socket.error().message());
    return;
  }
  multicast_[interface.address] = std::move(*socket);
}

void UdpAnnouncer::open_broadcast() {
  DatagramOptions options;
  options.bind = {"0.0.0.0", options_.udp_port};
  // Beside the multicast sockets on the same port.
  options.reuse_address = options_.udp_reuse_addr || !multicast_.empty();
  options.broadcast = true;
  auto socket = network_.open_datagram(options, receiver());
  if (!socket.ok()) {
    log_.debug("no broadcasts: ", socket.error().message());
    return;
  }
  broadcast_ = std::move(*socket);
}

void UdpAnnouncer::announce() {
  say();
  ++rounds_;
  schedule();
}

void UdpAnnouncer::say() {
  for (const auto& [address, socket] : multicast_) {
    socket->send(datagram_, {options_.udp_multicast, options_.udp_port});
  }
  if (broadcast_ != nullptr) {
    for (const std::string& address : broadcast_to_)
      broadcast_->send(datagram_, {address, options_.udp_port});
  }
}

void UdpAnnouncer::answer_namesake() {
  if (loop_.now() < no_answer_until_) return;
  no_answer_until_ = loop_.now() + kAnswerPause;
  say();
}

void UdpAnnouncer::schedule() {
  if (options_.udp_max_discovery > 0 && rounds_ >= options_.udp_max_discovery) return;
  const auto round = static_cast<std::size_t>(rounds_ - 1);
  const bool is_quick = round < kQuickPauses.size() && kQuickPauses[round] < options_.udp_period;
  timer_.set_after(loop_, is_quick ? kQuickPauses[round] : options_.udp_period, [this, is_quick] {
    if (!is_quick) open_sockets();
    announce();
  });
}

Network::DatagramCallback UdpAnnouncer::receiver() {
  return [this](BytesView datagram, const SocketAddress& from) { receive(datagram, from); };
}

void UdpAnnouncer::receive(BytesView datagram, const SocketAddress& from) {
  const auto heard = parse_announcement(datagram, name_space_, {});
  if (!heard) {
    log_.debug("a datagram from ", from.host, " is not for us: ", datagram.substr(0, kAnnouncedIdBytesMax));
    return;
  }
  if (heard->node == node_) {
    if (heard->port == port_ && is_own_host(network_, from.host)) return;  // Our own comes back.
    answer_namesake();
  }
  on_sighted_(heard->node, {from.host, heard->port});
}

}  // namespace weft
