#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "broker/broker.h"
#include "broker/calls/call_engine.h"
#include "broker/calls/prober.h"
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
  // Waits until the broker has stopped; whoever asks first sets it going.
  Task<void> stop();
  Task<void> wait_for_services(std::vector<std::string> names, Duration timeout);
  void spawn(UniqueFunction<Task<void>()> work);
  // Runs `work` on the loop's thread, unless the broker is gone by then. Any thread.
  void post(UniqueFunction<void()> work) { runtime.loop.post(life_.guard(std::move(work))); }
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
  ServedLoad served{options.transit.served_max, options.transit.served_bytes_max};
  std::unique_ptr<Dispatcher> dispatcher;
  IdempotencyTable repeats{options.idempotency};
  std::unique_ptr<Canary> canary;  // Over a bus alone.
  std::unique_ptr<CallEngine> calls;
  std::shared_ptr<LocalBus> local_bus = std::make_shared<LocalBus>(log);
  std::unique_ptr<EventEngine> events;
  std::unique_ptr<RequestServer> server;
  std::unique_ptr<ServiceHost> host;
  std::unique_ptr<Membership> membership;
  std::unique_ptr<Discovery> discovery;
  std::unique_ptr<Pinger> pinger;
  std::unique_ptr<Prober> prober;           // With a transporter.
  std::unique_ptr<LatencyMonitor> latency;  // Once a Latency strategy was made.
  Signal registry_changed;                  // Wakes those who wait for services.
  bool started = false;

 private:
  enum class Phase : std::uint8_t { kNew, kStarting, kRunning, kStopping, kStopped };

  void on_request(const RequestPacket& packet) override { server->serve(packet); }
  void on_response(const ResponsePacket& packet) override;
  void on_event(const EventPacket& packet, bool is_balanced) override;
  void on_control(PacketType type, std::string_view sender, const Value& body,
                  std::string_view remote_host) override;
  void on_duplicate_node(const Value& info) override;
  void on_duplicate_joining() override;
  void on_duplicate_sighted(const SocketAddress& address) override;
  void on_transporter_reconnected() override;
  void on_transporter_disconnected(const Error& reason) override;
  void on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) override;
  void on_node_lost(std::string_view node, const Error& reason) override;
  void on_undelivered(std::string_view node, std::string_view id) override;
  void on_transit_error(const Error& error, std::string_view type) override;

  void on_node_connected(const Node& node, bool reconnected) override;
  void on_node_updated(const Node& node) override;
  void on_node_restarted(const Node& node) override;
  void on_node_disconnected(const Node& node, bool unexpected) override;
  void on_remote_services_changed() override;

  Task<void> connect();
  void offer_latency_strategy();
  void measure_latency();
  void start_probing();
  void probe();
  // The link to it ended, or nobody takes what is sent to it.
  // `node` owes us no answers any more, and nobody waits there for ours.
  void give_up_on(const Node& node);
  void on_node_gone(std::string_view id, bool refused);
  Task<void> run_stop();
  void on_stopped();
  Task<void> next_turn();
  [[nodiscard]] bool is_ending() const { return phase_ == Phase::kStopping || phase_ == Phase::kStopped; }
  // Calls a hook of the user's that must not throw into the loop.
  template <typename Hook>
  void run_hook(std::string_view what, Hook&& hook);
  // Of two processes with one node id, the one that was there first stays.
  [[nodiscard]] bool was_here_first(std::string_view other_instance) const;
  // False: it was answered just now.
  bool answer_namesake();
  void give_up_name(std::string_view holder);
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
  bool refusing_ = false;  // Stopping, and past the time when what is on its way here is still served.
  Signal idle_;
  Signal connected_;
  Signal turn_;
  Signal stopped_;
  bool transit_started_ = false;
  std::optional<Result<>> connect_result_;
  bool transit_stopped_ = false;
  Task<void> stopping_;
  Timer announce_timer_;
  Timer latency_timer_;
  Timer probe_timer_;
  Instant last_announce_{};
  std::optional<Instant> first_announce_;
  bool namesake_joins_later_ = false;  // Another process with our node id came after our first announcement …
  bool namesake_joins_too_ = false;    // … or before it.
  std::optional<Instant> last_duplicate_answer_;
  std::optional<Instant> namesake_sighted_;  // First, over TCP.
  Instant namesake_told_{};                  // When the log last said so.
  bool gives_up_name_ = false;               // What is said in our name now is the other's.
  std::map<std::uint64_t, std::unique_ptr<Spawned>> spawned_;
  std::uint64_t last_spawned_ = 0;
};

}  // namespace weft
