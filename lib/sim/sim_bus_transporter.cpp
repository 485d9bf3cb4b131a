#include "lib/sim/sim_bus_transporter.h"

#include <algorithm>
#include <utility>

#include "lib/base/assert.h"
#include "lib/transport/subject.h"

namespace weft {

using Verb = SimBusMessage::Verb;

namespace {

constexpr Duration kReconnectWaitMin = std::chrono::milliseconds(50);
constexpr std::size_t kNameBytesMax = 4096;
constexpr Duration kStopWaitMax = std::chrono::milliseconds(1000);

Error not_connected() {
  return Error(ErrorClass::kBrokerDisconnected, "The transporter is not connected to the simulated bus.");
}

}  // namespace

SimBusTransporter::SimBusTransporter(const Runtime& runtime, SimBusTransporterOptions options)
    : loop_(runtime.loop), network_(runtime.network), random_(runtime.random), options_(std::move(options)) {}

SimBusTransporter::~SimBusTransporter() {
  *alive_ = false;
}

Transporter::Traits SimBusTransporter::traits() const {
  return {.name = "SimBus",
          .is_bus = true,
          .can_balance = true,
          .payload_bytes_max = state_ == State::kIdle ? 0 : options_.payload_bytes_max};
}

void SimBusTransporter::start(const Identity& identity, Listener& listener, Completion done) {
  WEFT_ASSERT(loop_.is_current() && state_ == State::kIdle);
  identity_ = identity;
  listener_ = &listener;
  start_done_ = std::move(done);
  reconnect_wait_ = Duration::zero();
  if (is_subject_name(identity.node_id) && is_subject_name(subject_prefix(identity.name_space)))
    return connect();
  loop_.post([this, alive = alive_] {
    if (!*alive || !start_done_) return;
    Completion failed = std::move(start_done_);
    start_done_ = nullptr;
    failed(Error::broker_options("The nodeID '" + identity_.node_id + "' or the namespace '" +
                                 identity_.name_space + "' cannot be part of a subject."));
  });
}

void SimBusTransporter::connect() {
  state_ = State::kAway;
  reader_ = SimBusReader();
  stream_ = network_.connect(options_.bus, options_.stream);
  stream_->set_handler(*this);
  const auto put = [this](const SimBusMessage& message) {
    scratch_.clear();
    append(scratch_, message);
    return stream_->write(scratch_.view(), {});
  };
  const bool taken = put({.verb = Verb::kJoin, .name = identity_.node_id, .tag = identity_.name_space}) &&
                     put({.verb = Verb::kSubscribe, .payload = subscriptions_});
  if (taken) return send_echo();  // The bus answers in order: behind it, all subscriptions stand.
  stream_.reset();
  reconnect_later();
}

void SimBusTransporter::reconnect_later() {
  // The first attempt after a loss comes at once; then ever slower, and spread so that the nodes of a mesh do
  // not come back in step.
  const double spread = 0.75 + 0.5 * random_.uniform();
  const Duration wait = std::chrono::duration_cast<Duration>(reconnect_wait_ * spread);
  reconnect_wait_ = std::clamp(reconnect_wait_ * 2, std::min(kReconnectWaitMin, options_.reconnect_wait_max),
                               options_.reconnect_wait_max);
  timer_.set_after(loop_, wait, [this] { connect(); });
}

void SimBusTransporter::on_data(BytesView bytes) {
  const std::shared_ptr<bool> alive = alive_;
  const Stream* from = stream_.get();
  reader_.read(bytes, [&](const SimBusMessage& message) {
    receive(message);
    return *alive && stream_.get() == from;
  });
}

void SimBusTransporter::receive(const SimBusMessage& message) {
  if (message.verb == Verb::kEcho) {
    ++echo_seen_;
    if (echo_seen_ < echo_sent_) return;
    if (state_ == State::kAway) return become_ready();
    if (state_ == State::kStopping) finish_stop();
    return;
  }
  if (state_ != State::kReady) return;
  if (message.verb == Verb::kUndelivered) return listener_->on_undelivered(message.name, message.tag);
  if (message.payload.empty()) return;  // A probe.
  listener_->on_frame({message.type, message.payload, {}, !message.tag.empty()});
}

void SimBusTransporter::become_ready() {
  state_ = State::kReady;
  reconnect_wait_ = Duration::zero();
  timer_.set_after(loop_, options_.ping_interval, [this] { watch_bus(); });
  if (!start_done_) return listener_->on_reconnected();
  Completion done = std::move(start_done_);
  start_done_ = nullptr;
  done({});
}

void SimBusTransporter::on_closed(const Error& reason) {
  const State before = state_;
  stream_.reset();
  echo_sent_ = echo_seen_ = 0;
  if (before == State::kStopping) return finish_stop();
  state_ = State::kAway;
  reconnect_later();
  if (before == State::kReady) {
    listener_->on_disconnected(
        Error(ErrorClass::kBrokerDisconnected, "The bus was lost: " + reason.message()));
  }
}

void SimBusTransporter::send_echo() {
  scratch_.clear();
  append(scratch_, {.verb = Verb::kEcho});
  if (stream_->write(scratch_.view(), {})) ++echo_sent_;
}

// Each interval one echo; the last one must have come back by the next.
void SimBusTransporter::watch_bus() {
  if (echo_seen_ < echo_sent_) {
    return on_closed(Error(ErrorClass::kBrokerDisconnected, "it does not answer"));
  }
  send_echo();
  timer_.set_after(loop_, options_.ping_interval, [this] { watch_bus(); });
}

void SimBusTransporter::stop(Completion done) {
  WEFT_ASSERT(loop_.is_current() && state_ != State::kStopping);
  stop_done_ = std::move(done);
  timer_.cancel();
  if (start_done_) {
    loop_.post([abandoned = std::move(start_done_)]() mutable {
      abandoned(Error(ErrorClass::kBrokerDisconnected, "The transporter was stopped."));
    });
    start_done_ = nullptr;
  }
  const bool was_ready = state_ == State::kReady;
  state_ = State::kStopping;
  if (!was_ready) {
    stream_.reset();
    loop_.post([this, alive = alive_] {
      if (*alive) finish_stop();
    });
    return;
  }
  scratch_.clear();
  append(scratch_, {.verb = Verb::kLeave});  // Behind it the bus tells others that this node is gone.
  (void)stream_->write(scratch_.view(), {});
  send_echo();
  timer_.set_after(loop_, kStopWaitMax, [this] { finish_stop(); });
}

void SimBusTransporter::finish_stop() {
  if (!stop_done_) return;
  timer_.cancel();
  stream_.reset();
  echo_sent_ = echo_seen_ = 0;
  state_ = State::kIdle;
  listener_ = nullptr;
  Completion done = std::move(stop_done_);
  stop_done_ = nullptr;
  done({});
}

Result<> SimBusTransporter::publish(const SimBusMessage& message) {
  if (state_ != State::kReady) return not_connected();
  if (message.verb != Verb::kBroadcast &&
      (!is_subject_name(message.name) || message.name.size() > kNameBytesMax)) {
    return Error(ErrorClass::kClient,
                 "The name '" + std::string(message.name) + "' cannot be part of a subject.",
                 "INVALID_SUBJECT");
  }
  if (message.payload.size() > options_.payload_bytes_max) {
    return Error(ErrorClass::kClient,
                 "A packet of " + std::to_string(message.payload.size()) +
                     " bytes is too large: the bus takes up to " +
                     std::to_string(options_.payload_bytes_max) + " bytes.",
                 "PACKET_TOO_LARGE",
                 Value{{"size", static_cast<std::int64_t>(message.payload.size())},
                       {"limit", static_cast<std::int64_t>(options_.payload_bytes_max)}})
        .with_code(413);
  }
  scratch_.clear();
  append(scratch_, message);
  if (stream_->write(scratch_.view(), {})) return {};
  return Error::queue_is_full({}, message.name, stream_->queued_bytes(), options_.stream.queue_bytes_max);
}

Result<> SimBusTransporter::send(std::string_view node, PacketType type, BytesView payload,
                                 std::string_view correlation) {
  return publish({.verb = Verb::kSend, .type = type, .name = node, .tag = correlation, .payload = payload});
}

Result<> SimBusTransporter::broadcast(PacketType type, BytesView payload) {
  return publish({.verb = Verb::kBroadcast, .type = type, .payload = payload});
}

void SimBusTransporter::probe(std::string_view node, BytesView pong) {
  (void)publish({.verb = Verb::kProbe, .type = PacketType::kPong, .name = node, .payload = pong});
}

void SimBusTransporter::subscribe_balanced(std::span<const std::string> actions,
                                           std::span<const BalancedEvent> events) {
  subscriptions_.clear();
  for (const std::string& action : actions) {
    if (is_subject_name(action)) subscriptions_ += "a " + action + "\n";
  }
  for (const BalancedEvent& event : events) {
    if (is_subject_name(event.group) && event.pattern.find('\n') == std::string::npos)
      subscriptions_ += "e " + event.group + " " + event.pattern + "\n";
  }
  if (state_ != State::kIdle && state_ != State::kStopping && stream_ != nullptr) {
    scratch_.clear();
    append(scratch_, {.verb = Verb::kSubscribe, .payload = subscriptions_});
    (void)stream_->write(scratch_.view(), {});
  }
}

Result<> SimBusTransporter::publish_balanced_request(std::string_view action, BytesView payload) {
  return publish({.verb = Verb::kRequest, .type = PacketType::kRequest, .name = action, .payload = payload});
}

Result<> SimBusTransporter::publish_balanced_event(std::string_view group, std::string_view event,
                                                   BytesView payload) {
  return publish(
      {.verb = Verb::kEvent, .type = PacketType::kEvent, .name = group, .tag = event, .payload = payload});
}

}  // namespace weft
