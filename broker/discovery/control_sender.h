#pragma once

#include <string_view>

#include "lib/error/result.h"
#include "lib/net/network.h"
#include "lib/protocol/packet.h"

namespace weft {

// Sends packets that are no calls or events. Implemented by Transit.
class ControlSender {
 public:
  // `body` gets ver and sender. An empty node means all.
  virtual Result<> send_control(PacketType type, std::string_view node, Value body) = 0;

 protected:
  ~ControlSender() = default;
};

// Peer to peer: where nodes are dialled. Implemented by Transit.
class PeerAddresses {
 public:
  // What opens every connection we make, without ver and sender.
  virtual void set_greeting(Value hello) = 0;
  virtual void learn_address(std::string_view node, const SocketAddress& address) = 0;
  virtual void forget_node(std::string_view node) = 0;
  [[nodiscard]] virtual SocketAddress listen_address() const = 0;

 protected:
  ~PeerAddresses() = default;
};

}  // namespace weft
