#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/log.h"
#include "lib/loop/event_loop.h"
#include "lib/net/poller.h"
#include "lib/random/random.h"
#include "lib/transport/transporter.h"
#include "transporters/nats/nats_connection.h"
#include "transporters/nats/nats_options.h"
#include "transporters/nats/nats_subjects.h"

namespace weft {

// Carries frames over NATS servers, with the subjects that Moleculer nodes use.
//
// Keeps one connection at a time: to the first of its servers that works. When it is lost, a new one is made
// and subscribed anew, for as long as it takes. A frame sent with a correlation asks the server to tell when
// nobody takes it (on_undelivered), which it does within a fraction of a millisecond.
//
// Everything borrowed outlives this. Thread: loop thread only.
class NatsTransporter final : public Transporter, private NatsConnection::Handler {
 public:
  NatsTransporter(EventLoop& loop, Poller& poller, Random& random, Logger log, NatsOptions options);
  ~NatsTransporter() override;
  NatsTransporter(const NatsTransporter&) = delete;
  NatsTransporter& operator=(const NatsTransporter&) = delete;

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
  enum class State {
    kIdle,
    kAway,         // No connection: one is being made, or will be.
    kOpening,      // Connected; the server has not said whether it permits the first subscriptions.
    kSubscribing,  // It has not confirmed the rest of them.
    kReady,
    kStopping,  // The server is asked whether it has taken all that was sent.
    kClosing,
  };
  struct Balanced {
    std::string subject;
    std::string queue;
    PacketType type;
    auto operator<=>(const Balanced&) const = default;
  };
  struct EarlyFrame {
    PacketType type;
    bool is_balanced;
    Buffer payload;
  };

  void on_message(PacketType type, BytesView payload, bool is_balanced) override;
  void on_inbox(std::string_view subject, bool no_responders) override;
  void on_complaint(const std::string& text) override;
  void on_lost(const Error& reason) override;

  void dial();
  void on_dialled(Result<std::unique_ptr<NatsConnection>> outcome);
  [[nodiscard]] Result<> subscribe_first();
  void subscribe_rest();
  [[nodiscard]] Result<> subscribe_each_targeted();
  [[nodiscard]] bool is_about_any(std::string_view complaint) const;
  void become_ready();
  void redial_later();
  void fail_start(const Error& error);
  void send_echo();
  void watch_server();
  void close();
  void finish_stop();
  [[nodiscard]] std::vector<std::string> servers() const;
  [[nodiscard]] Result<> publish(const char* subject, const char* reply, BytesView payload,
                                 std::string_view name);

  EventLoop& loop_;
  Poller& poller_;
  Random& random_;
  const Logger log_;
  const NatsOptions options_;

  State state_ = State::kIdle;
  Identity identity_;
  Listener* listener_ = nullptr;
  Completion start_done_;  // Set until the first connection is ready.
  Completion stop_done_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // False once this is destroyed.

  std::vector<std::string> servers_;             // As configured.
  std::vector<std::string> discovered_servers_;  // As the last server named them.
  std::shared_ptr<NatsConnection::DialJob> dialling_;
  std::unique_ptr<NatsConnection> connection_;
  Timer redial_timer_;
  Duration redial_wait_{};
  std::string told_failure_;  // The reason last logged; the same one is not logged again.

  std::optional<NatsSubjects> subjects_;
  std::optional<NatsInbox> inbox_;  // Of the connection.
  std::size_t payload_bytes_max_ = 0;
  bool is_any_refused_ = false;  // The server permits no subscription to MOL.*.<me>.
  std::set<Balanced> balanced_;
  std::vector<EarlyFrame> early_;  // What came while the last subscriptions were not confirmed.
  std::size_t early_bytes_ = 0;

  std::uint64_t echo_sent_ = 0;
  std::uint64_t echo_seen_ = 0;
  Timer echo_timer_;  // The next question whether the server is there.
  Timer stop_timer_;
};

}  // namespace weft
