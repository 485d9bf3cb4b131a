#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/log.h"
#include "lib/loop/event_loop.h"
#include "lib/net/network.h"
#include "transporters/tcp/tcp_options.h"

namespace weft {

// Says by datagram where this node listens, and hears where others do.
//
// There is one multicast socket for each IPv4 interface, loopback too, and one for broadcasts. A start is
// said a few times in quick succession, since a datagram may be lost and the others should not have to wait
// for the next period. Interfaces that come or go are followed once a period.
//
// Who announces our own node ID from elsewhere is another process by mistake. It is sighted like any other,
// and told at once that we are here, so that it need not wait for the next period either.
//
// Thread: loop thread only.
class UdpAnnouncer {
 public:
  // `node` is valid during the call. May stop or destroy the announcer.
  using SightedCallback = UniqueFunction<void(std::string_view node, const SocketAddress& address)>;

  // All that is borrowed outlives the announcer.
  UdpAnnouncer(EventLoop& loop, Network& network, Logger log, const TcpOptions& options,
               std::string name_space, std::string node, std::uint16_t port, SightedCallback on_sighted);
  ~UdpAnnouncer();
  UdpAnnouncer(const UdpAnnouncer&) = delete;
  UdpAnnouncer& operator=(const UdpAnnouncer&) = delete;

  // Opens the sockets and announces at once. False: no socket could be opened, nobody will be found.
  [[nodiscard]] bool start();

 private:
  struct Target {
    DatagramSocket* socket;
    SocketAddress address;
  };

  void open_sockets();
  [[nodiscard]] bool is_used(const InterfaceAddress& interface) const;
  void open_multicast(const InterfaceAddress& interface);
  void open_broadcast();
  void announce();
  void say();
  void answer_namesake();
  void schedule();
  [[nodiscard]] Network::DatagramCallback receiver();
  void receive(BytesView datagram, const SocketAddress& from);

  EventLoop& loop_;
  Network& network_;
  const Logger log_;
  const TcpOptions& options_;
  const std::string name_space_;
  const std::string node_;
  const std::uint16_t port_;
  const std::string datagram_;
  SightedCallback on_sighted_;
  std::map<std::string, std::unique_ptr<DatagramSocket>> multicast_;  // By the interface's address.
  std::unique_ptr<DatagramSocket> broadcast_;
  std::vector<std::string> broadcast_to_;
  int rounds_ = 0;  // Announcements made.
  Instant no_answer_until_{};
  Timer timer_;
};

}  // namespace weft
