#pragma once

#include "broker/discovery/control_sender.h"
#include "broker/discovery/heartbeat.h"
#include "broker/discovery/membership.h"
#include "broker/options.h"
#include "lib/runtime/runtime.h"

namespace weft {

// Discovery over a bus: DISCOVER and INFO broadcasts, heartbeats, DISCONNECT.
class BusDiscovery final : public Discovery {
 public:
  struct Parts {
    EventLoop& loop;
    SystemProbe& system;
    Random& random;
    Membership& membership;
    ControlSender& sender;
    const HeartbeatOptions& options;
  };
  explicit BusDiscovery(Parts parts);

  void start() override;
  void announce() override;
  void stop(bool goodbye) override;
  void on_control(PacketType type, std::string_view sender, const Value& body,
                  std::string_view remote_host) override;
  void on_node_sighted(std::string_view, const SocketAddress&, bool) override {}
  void on_node_lost(std::string_view node, bool) override { parts_.membership.set_offline(node, true); }
  void on_node_hung(std::string_view node) override { parts_.membership.set_offline(node, true); }
  void tell_suspects(const std::vector<std::string>& nodes) override;
  void on_reconnected() override;

 private:
  void send_info(std::string_view node);
  [[nodiscard]] Value heartbeat() const;
  void tick();
  void carry_out();

  Parts parts_;
  HeartbeatMonitor monitor_;
  Timer timer_;
  bool announced_ = false;
  bool stopped_ = false;
};

}  // namespace weft
