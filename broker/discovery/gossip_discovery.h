#pragma once

#include "broker/discovery/control_sender.h"
#include "broker/discovery/membership.h"
#include "broker/gossip/gossip.h"
#include "broker/options.h"
#include "lib/runtime/runtime.h"

namespace weft {

// Discovery from peer to peer: carries out what Gossip says, and keeps its time.
class GossipDiscovery final : public Discovery {
 public:
  struct Parts {
    EventLoop& loop;
    SystemProbe& system;
    Random& random;
    Membership& membership;
    ControlSender& sender;
    PeerAddresses& addresses;
    const GossipSettings& options;
    std::size_t nodes_max;
    Logger log;
  };
  explicit GossipDiscovery(Parts parts);

  void start() override;
  void announce() override;
  void stop(bool goodbye) override;
  void on_control(PacketType type, std::string_view sender, const Value& body,
                  std::string_view remote_host) override;
  void on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) override;
  void on_node_lost(std::string_view node) override;
  void on_reconnected() override {}

 private:
  void tick();
  void carry_out();
  void carry_out(const Gossip::Output& output);

  Parts parts_;
  Gossip gossip_;
  Timer timer_;
  Instant last_cpu_reading_{};
  bool stopped_ = false;
};

}  // namespace weft
