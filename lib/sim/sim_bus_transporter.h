#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/random/random.h"
#include "lib/runtime/runtime.h"
#include "lib/sim/sim_bus_wire.h"
#include "lib/transport/transporter.h"

namespace weft {

struct SimBusTransporterOptions {
  SocketAddress bus{"bus", 4222};
  std::size_t payload_bytes_max = 1UL << 20;
  // A bus that has not answered one question by the next is lost.
  Duration ping_interval = std::chrono::seconds(5);
  Duration reconnect_wait_max = std::chrono::seconds(2);
  StreamOptions stream;
};

// Carries frames over a SimBus, and behaves towards its node as the NATS transporter does: one connection,
// made anew for as long as it takes when it is lost; what is sent while it is away is refused.
//
// Needs only the seams of a runtime. Everything borrowed outlives this. Thread: loop thread only.
class SimBusTransporter final : public Transporter, private Stream::Handler {
 public:
  explicit SimBusTransporter(const Runtime& runtime, SimBusTransporterOptions options = {});
  ~SimBusTransporter() override;
  SimBusTransporter(const SimBusTransporter&) = delete;
  SimBusTransporter& operator=(const SimBusTransporter&) = delete;

  [[nodiscard]] Traits traits() const override;
  void start(const Identity& identity, Listener& listener, Completion done) override;
  void stop(Completion done) override;
  [[nodiscard]] Result<> send(std::string_view node, PacketType type, BytesView payload,
                              std::string_view correlation) override;
  [[nodiscard]] Result<> broadcast(PacketType type, BytesView payload) override;
  void probe(std::string_view node, BytesView pong) override;
  void subscribe_balanced(std::span<const std::string> actions,
                          std::span<const BalancedEvent> events) override;
  [[nodiscard]] Result<> publish_balanced_request(std::string_view action, BytesView payload) override;
  [[nodiscard]] Result<> publish_balanced_event(std::string_view group, std::string_view event,
                                                BytesView payload) override;

 private:
  enum class State : std::uint8_t {
    kIdle,
    kAway,      // No connection, or one that is not joined yet.
    kReady,     //
    kStopping,  // The bus is asked whether it has taken all that was sent.
  };

  void on_data(BytesView bytes) override;
  void on_closed(const Error& reason) override;

  void connect();
  void reconnect_later();
  void receive(const SimBusMessage& message);
  void become_ready();
  void send_echo();
  void watch_bus();
  void finish_stop();
  [[nodiscard]] Result<> publish(const SimBusMessage& message);

  EventLoop& loop_;
  Network& network_;
  Random& random_;
  const SimBusTransporterOptions options_;

  State state_ = State::kIdle;
  Identity identity_;
  Listener* listener_ = nullptr;
  Completion start_done_;  // Set until the first connection is ready.
  Completion stop_done_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // False once this is destroyed.

  std::unique_ptr<Stream> stream_;
  SimBusReader reader_;
  Buffer scratch_;
  std::string subscriptions_;  // As the bus is told them.
  std::uint64_t echo_sent_ = 0;
  std::uint64_t echo_seen_ = 0;
  Duration reconnect_wait_{};
  Timer timer_;  // Of the next connection, the next echo, or the end of stopping.
};

}  // namespace weft
