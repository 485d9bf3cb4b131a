#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "broker/broker.h"
#include "broker/calls/call_engine.h"
#include "broker/discovery/latency_monitor.h"
#include "broker/discovery/membership.h"
#include "broker/discovery/pinger.h"
#include "broker/dispatch/dispatcher.h"
#include "broker/dispatch/request_server.h"
#include "broker/events/event_engine.h"
#include "broker/events/local_bus.h"
#include "broker/registry/registry.h"
#include "broker/services/service_host.h"
#include "broker/strategy/strategy.h"
#include "broker/transit/transit.h"
#include "lib/base/life.h"
#include "lib/loop/signal.h"
#include "lib/protocol/serializer.h"

namespace weft {

// Where the parts of a broker meet: makes them, hands packets and news from one to the other, starts and
// stops them.
//
// Thread: loop thread only.
class BrokerCore final : public Transit::Handler, public Membership::Listener {
 public:
  BrokerCore(Broker& broker, const Runtime& runtime, BrokerOptions options,
             std::unique_ptr<Transporter> transporter);
  ~BrokerCore();

  Task<void> start();
  Task<void> stop();
  Task<void> wait_for_services(std::vector<std::string> names, Duration timeout);
  void spawn(UniqueFunction<Task<void>()> work);
  [[nodiscard]] bool known_service(std::string_view alternatives) const;
  void publish(std::string_view event, Value payload);

  Runtime runtime;
  BrokerOptions options;
  Logger log;
  StrategyTable strategies;
  NodeCatalog nodes;
  std::unique_ptr<Serializer> serializer;
  std::unique_ptr<Transporter> transporter;
  std::unique_ptr<Registry> registry;
  std::unique_ptr<Transit> transit;  // Null without a transporter.
  std::unique_ptr<Dispatcher> dispatcher;
  std::unique_ptr<Canary> canary;  // Over a bus alone.
  std::unique_ptr<CallEngine> calls;
  std::shared_ptr<LocalBus> local_bus = std::make_shared<LocalBus>();
  std::unique_ptr<EventEngine> events;
  std::unique_ptr<RequestServer> server;
  std::unique_ptr<ServiceHost> host;
  std::unique_ptr<Membership> membership;
  std::unique_ptr<Discovery> discovery;
  std::unique_ptr<Pinger> pinger;
  std::unique_ptr<LatencyMonitor> latency;  // Once a Latency strategy was made.
  Signal registry_changed;                  // Wakes those who wait for services.
  bool started = false;

 private:
  enum class Phase : std::uint8_t { kNew, kStarting, kRunning, kStopping, kStopped };

  void on_request(const RequestPacket& packet) override { server->serve(packet); }
  void on_response(const ResponsePacket& packet) override;
  void on_event(const EventPacket& packet) override;
  void on_control(PacketType type, std::string_view sender, const Value& body,
                  std::string_view remote_host) override;
  void on_duplicate_node(const Value& info) override;
  void on_transporter_reconnected() override;
  void on_transporter_disconnected(const Error& reason) override;
  void on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) override;
  void on_node_lost(std::string_view node, const Error& reason) override;
  void on_undelivered(std::string_view node, std::string_view id) override;
  void on_transit_error(const Error& error, std::string_view type) override;

  void on_node_connected(const Node& node, bool reconnected) override;
  void on_node_updated(const Node& node) override;
  void on_node_disconnected(const Node& node, bool unexpected) override;
  void on_remote_services_changed() override;

  Task<void> connect();
  void offer_latency_strategy();
  void measure_latency();
  void on_local_services_changed();
  void announce_soon();
  void announce_now();
  void subscribe_balanced();
  Task<void> drain(Instant deadline);

  struct Spawned {
    UniqueFunction<Task<void>()> work;  // Holds what the coroutine's lambda captured.
    Task<void> task;
    BrokerCore* core = nullptr;
    std::uint64_t number = 0;
  };
  static void on_spawned_end(void* spawned);

  Broker& broker_;
  Life life_;  // For what the loop runs later.
  Phase phase_ = Phase::kNew;
  Signal idle_;
  Signal connected_;
  Timer announce_timer_;
  Timer latency_timer_;
  Instant last_announce_{};
  Instant joined_at_{};
  Instant last_duplicate_answer_{};
  std::map<std::uint64_t, std::unique_ptr<Spawned>> spawned_;
  std::uint64_t last_spawned_ = 0;
};

}  // namespace weft
