#include "lib/sim/sim_datagrams.h"

#include <algorithm>
#include <utility>

#include "lib/sim/sim_fabric.h"
#include "lib/sim/sim_loop.h"
#include "lib/sim/sim_world.h"

namespace weft {

namespace {

constexpr std::size_t kDatagramBytesMax = 65507;
constexpr std::size_t kWaitingMax = 1000;  // As a receive buffer of 212992 bytes holds small ones.

bool is_multicast(std::string_view address) {
  const auto dot = address.find('.');
  if (dot != 3) return false;
  return address >= "224" && address < "240";
}

}  // namespace

class SimDatagramSocket final : public DatagramSocket {
 public:
  SimDatagramSocket(SimDatagrams& datagrams, std::shared_ptr<SimDatagrams::Socket> socket)
      : datagrams_(datagrams), socket_(std::move(socket)) {}
  ~SimDatagramSocket() override { datagrams_.close(*socket_); }
  void send(BytesView datagram, const SocketAddress& to) override { datagrams_.send(*socket_, datagram, to); }
  [[nodiscard]] SocketAddress local_address() const override {
    return {socket_->options.bind.host, socket_->port};
  }

 private:
  SimDatagrams& datagrams_;
  std::shared_ptr<SimDatagrams::Socket> socket_;
};

Result<std::unique_ptr<DatagramSocket>> SimDatagrams::open(SimLoop& loop, const DatagramOptions& options,
                                                           Network::DatagramCallback on_datagram) {
  SimHost& host = loop.host();
  if (loop.is_dead()) return sim_socket_error("ENETDOWN", "the process is dead");
  std::uint16_t port = options.bind.port;
  if (port == 0) {
    port = fabric_.ephemeral_port(host);
  } else {
    for (const auto& other : sockets_) {
      if (other->host != &host || other->port != port) continue;
      if (options.reuse_address && other->options.reuse_address) continue;
      return sim_socket_error("EADDRINUSE",
                              "cannot bind " + options.bind.to_string() + ": address already in use");
    }
  }
  sockets_.push_back(std::make_shared<Socket>(Socket{.host = &host,
                                                     .loop = &loop,
                                                     .options = options,
                                                     .port = port,
                                                     .on_datagram = std::move(on_datagram)}));
  return std::unique_ptr<DatagramSocket>(std::make_unique<SimDatagramSocket>(*this, sockets_.back()));
}

bool SimDatagrams::is_bound(const SimHost& host, std::uint16_t port) const {
  return std::any_of(sockets_.begin(), sockets_.end(),
                     [&](const auto& socket) { return socket->host == &host && socket->port == port; });
}

void SimDatagrams::close(Socket& socket) {
  if (!std::exchange(socket.open, false)) return;
  std::erase_if(sockets_, [&socket](const auto& held) { return held.get() == &socket; });
}

void SimDatagrams::close_all(const SimLoop& loop) {
  std::erase_if(sockets_, [&loop](const auto& socket) {
    if (socket->loop != &loop) return false;
    socket->open = false;
    return true;
  });
}

void SimDatagrams::send(const Socket& from, BytesView datagram, const SocketAddress& to) {
  if (!from.open || datagram.size() > kDatagramBytesMax) return;
  auto bytes = std::make_shared<Buffer>();
  bytes->append(datagram);
  const bool multicast = is_multicast(to.host);
  const bool broadcast = !multicast && to.host.ends_with(".255");
  if (broadcast && !from.options.broadcast) return;  // EACCES.
  if (multicast || broadcast) {
    // The loopback network's own broadcast stays on the host.
    const bool host_only = to.host.starts_with("127.") || from.options.interface_address.starts_with("127.");
    // By index: a delivery only makes events, but keep the promise cheap to hold.
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      const std::shared_ptr<Socket>& socket = sockets_[i];
      if (socket->port != to.port) continue;
      if (multicast && socket->options.multicast_group != to.host) continue;
      if (host_only && socket->host != from.host) continue;
      deliver(from, socket, bytes, host_only);
    }
    return;
  }
  const SimFabric::Resolved target = fabric_.resolve(*from.host, to.host);
  if (target.host == nullptr) return;
  for (auto at = sockets_.rbegin(); at != sockets_.rend(); ++at) {
    if ((*at)->host != target.host || (*at)->port != to.port) continue;
    deliver(from, *at, bytes, target.loopback);
    return;
  }
}

void SimDatagrams::deliver(const Socket& from, const std::shared_ptr<Socket>& to,
                           const std::shared_ptr<const Buffer>& bytes, bool loopback) {
  if (!fabric_.is_open(*from.host, *to->host)) return;
  const SimLink& link = fabric_.link(*from.host, *to->host);
  const int copies = fabric_.chance(link.duplicate) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    if (fabric_.chance(link.loss) || to->waiting >= kWaitingMax) continue;
    Duration latency = fabric_.sample_latency(link);
    if (fabric_.chance(link.reorder) && link.reorder_max > Duration::zero()) {
      latency += Duration(static_cast<Duration::rep>(fabric_.below(link.reorder_max.count())));
    }
    ++to->waiting;
    SimWorld& world = fabric_.world();
    to->loop->add(world.now() + latency,
                  [&world, to, bytes, host = loopback ? nullptr : from.host, port = from.port] {
                    --to->waiting;
                    if (!to->open) return;
                    world.mix(bytes->view());
                    const SocketAddress sender{host == nullptr ? "127.0.0.1" : host->address(), port};
                    if (world.is_traced()) {
                      world.show(to->host->name(), "datagram from " + sender.to_string());
                    }
                    to->on_datagram(bytes->view(), sender);
                  });
  }
}

}  // namespace weft
