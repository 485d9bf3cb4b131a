#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/discovery/control_sender.h"
#include "broker/discovery/membership.h"
#include "broker/gossip/gossip.h"
#include "broker/gossip/weave/weave.h"
#include "broker/options.h"
#include "lib/runtime/runtime.h"

namespace weft {

// Discovery from peer to peer: carries out what Gossip and Weave say, keeps their time, and tells each what
// the other found out.
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
    bool weave;  // Whether this node takes part in it.
    std::size_t nodes_max;
    Logger log;
    std::function<bool(const Node&)> heard_lately;  // See Gossip::set_witness().
  };
  explicit GossipDiscovery(Parts parts);

  void start() override;
  void announce() override;
  void stop(bool goodbye) override;
  void on_control(PacketType type, std::string_view sender, const Value& body,
                  std::string_view remote_host) override;
  void on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) override;
  void on_node_lost(std::string_view node, bool refused) override;
  void on_node_hung(std::string_view node) override;
  void tell_suspects(const std::vector<std::string>&) override {}  // That it is offline is told anyway.
  void on_reconnected() override {}

 private:
  void tick();
  void carry_out();
  void carry_out(const Gossip::Output& output);
  void carry_out(const Weave::Output& output);
  void receive_weave(std::string_view sender, const Value& body);
  void send_weave(const Weave::Send& send);
  void info_applied(const InfoOutcome& outcome);
  void tell_weave_of_us();

  Parts parts_;
  Gossip gossip_;
  std::optional<Weave> weave_;    // None: switched off.
  const Value* infos_ = nullptr;  // Those beside the message that is being received.
  bool is_news_ = true;           // What gossip learns now is little enough to be news to others.
  bool from_weave_ = false;       // What gossip applies now the weave knows.
  std::deque<std::pair<Instant, Weave::Gone>> leaving_;  // By their own word; and when they are gone.
  Timer timer_;
  Instant last_cpu_reading_{};
  bool stopped_ = false;
};

}  // namespace weft
