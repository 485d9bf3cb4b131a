#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/net/network.h"

namespace weft {

class SimFabric;
class SimHost;
class SimLoop;

// The datagram sockets of all hosts, and the way between them: lost, doubled, overtaken.
//
// Multicast reaches those who joined the group on the port, broadcast those who are bound to it, in order of
// opening; the sender is among them. Of several processes of one host that share a port, the last to open it
// gets what is sent to the host alone.
class SimDatagrams {
 public:
  explicit SimDatagrams(SimFabric& fabric) : fabric_(fabric) {}

  Result<std::unique_ptr<DatagramSocket>> open(SimLoop& loop, const DatagramOptions& options,
                                               Network::DatagramCallback on_datagram);
  [[nodiscard]] bool is_bound(const SimHost& host, std::uint16_t port) const;
  void close_all(const SimLoop& loop);

 private:
  friend class SimDatagramSocket;

  struct Socket {
    SimHost* host = nullptr;
    SimLoop* loop = nullptr;
    DatagramOptions options;
    std::uint16_t port = 0;
    bool open = true;
    std::size_t waiting = 0;  // Datagrams on their way to it or unread.
    Network::DatagramCallback on_datagram;
  };

  void send(const Socket& from, BytesView datagram, const SocketAddress& to);
  void deliver(const Socket& from, const std::shared_ptr<Socket>& to,
               const std::shared_ptr<const Buffer>& bytes, bool loopback);
  void close(Socket& socket);

  SimFabric& fabric_;
  std::vector<std::shared_ptr<Socket>> sockets_;  // In order of opening.
};

}  // namespace weft
