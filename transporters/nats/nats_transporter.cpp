#include "transporters/nats/nats_transporter.h"

#include <algorithm>
#include <array>

#include "lib/transport/subject.h"

namespace weft {

namespace {

constexpr Duration kRedialWaitMin = std::chrono::milliseconds(50);
constexpr Duration kFlushWaitMax = std::chrono::milliseconds(1000);  // Of stop().
constexpr Duration kStopWaitMax = std::chrono::milliseconds(1700);
constexpr std::size_t kEarlyBytesMax = 4UL << 20;

// Targeted packets share one subscription, which keeps their order, and are drained with each read.
constexpr std::array kTargeted = {PacketType::kRequest, PacketType::kResponse, PacketType::kEvent,
                                  PacketType::kPing,    PacketType::kPong,     PacketType::kDiscover,
                                  PacketType::kInfo};
// Whose order among each other matters: an INFO says something else behind a DISCONNECT than before it. (A
// targeted INFO may overtake them. It answers a node that is there to be asked; should it outrun the goodbye
// of the process before, the INFO that every node broadcasts when it has started sets that right.)
constexpr std::array kOrderedBroadcast = {PacketType::kDiscover, PacketType::kInfo, PacketType::kDisconnect,
                                          PacketType::kHeartbeat};

Error not_connected() {
  return Error(ErrorClass::kBrokerDisconnected, "The NATS transporter is not connected.");
}

Error bad_name(std::string_view what, std::string_view name, std::string_view fault) {
  return Error(ErrorClass::kClient,
               std::string(what) + " '" + std::string(name) +
                   "' cannot be part of a NATS subject: " + std::string(fault) + ".",
               "INVALID_SUBJECT");
}

// Short, for it is part of every request.
std::string inbox_token(Random& random) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
  std::string token;
  for (std::uint64_t bits = random.next(); token.size() < 11; bits >>= 6) token += kDigits[bits & 63];
  return token;
}

// "user:password@" of a URL, or nothing.
std::string_view credentials_of(std::string_view url) {
  const std::size_t scheme_end = url.find("://");
  const std::size_t at = url.rfind('@');
  if (scheme_end == std::string_view::npos || at == std::string_view::npos) return {};
  return url.substr(scheme_end + 3, at + 1 - (scheme_end + 3));
}

}  // namespace

NatsTransporter::NatsTransporter(EventLoop& loop, Poller& poller, Random& random, Logger log,
                                 NatsOptions options)
    : loop_(loop), poller_(poller), random_(random), log_(std::move(log)), options_(std::move(options)) {}

NatsTransporter::~NatsTransporter() {
  *alive_ = false;
}

Transporter::Traits NatsTransporter::traits() const {
  return {.name = "NATS", .is_bus = true, .can_balance = true, .payload_bytes_max = payload_bytes_max_};
}

void NatsTransporter::start(const Identity& identity, Listener& listener, Completion done) {
  WEFT_ASSERT(loop_.is_current() && state_ == State::kIdle);
  identity_ = identity;
  listener_ = &listener;
  start_done_ = std::move(done);
  told_failure_.clear();
  const auto fail = [this](Error error) {
    state_ = State::kAway;  // What fail_start() expects.
    loop_.post([this, alive = alive_, error = std::move(error)] {
      if (*alive && start_done_) fail_start(error);
    });
  };
  if (const auto fault = subject_name_fault(identity.node_id)) {
    return fail(Error::broker_options("nodeID '" + identity.node_id +
                                      "' cannot be used with NATS, where it is part of subjects: " + *fault +
                                      "."));
  }
  if (const auto fault = subject_name_fault(subject_prefix(identity.name_space))) {
    return fail(Error::broker_options("namespace '" + identity.name_space +
                                      "' cannot be used with NATS, where it is part of subjects: " + *fault +
                                      "."));
  }
  auto checked = check_nats_options(options_);
  if (!checked.ok()) return fail(checked.error());
  servers_ = std::move(*checked);
  subjects_.emplace(identity.name_space);
  redial_wait_ = Duration::zero();
  dial();
}

void NatsTransporter::dial() {
  state_ = State::kAway;
  NatsConnection::DialSettings settings{
      .options = options_,
      .servers = servers(),
      .client_name = options_.name.empty() ? identity_.node_id : options_.name};
  dialling_ = NatsConnection::dial(loop_, poller_, std::move(settings), *this,
                                   [this, alive = alive_](Result<std::unique_ptr<NatsConnection>> outcome) {
                                     if (*alive) on_dialled(std::move(outcome));
                                   });
}

std::vector<std::string> NatsTransporter::servers() const {
  std::vector<std::string> all = servers_;
  const std::string_view credentials = credentials_of(servers_.front());
  for (std::string url : discovered_servers_) {
    if (credentials_of(url).empty()) url.insert(url.find("://") + 3, credentials);
    if (std::find(all.begin(), all.end(), url) == all.end()) all.push_back(std::move(url));
  }
  return all;
}

void NatsTransporter::on_dialled(Result<std::unique_ptr<NatsConnection>> outcome) {
  dialling_.reset();
  Result<> subscribed;
  if (outcome.ok()) {
    connection_ = std::move(*outcome);
    payload_bytes_max_ = connection_->payload_bytes_max();
    inbox_.emplace(inbox_token(random_));
    subscribed = subscribe_first();
    if (subscribed.ok()) {
      state_ = State::kOpening;
      send_echo();  // The server answers in order: behind it, the subscriptions stand or are refused.
      echo_timer_.set_after(loop_, options_.ping_interval, [this] { watch_server(); });
      return;
    }
    connection_.reset();
  }
  const Error& error = outcome.ok() ? subscribed.error() : outcome.error();
  if (start_done_ && error.error_class() == ErrorClass::kBrokerOptions) return fail_start(error);
  if (told_failure_ != error.message()) {
    told_failure_ = error.message();
    log_.warn(error.message(), " Trying again.");
  }
  redial_later();
}

void NatsTransporter::redial_later() {
  // The first attempt after a loss comes at once; then ever slower, and spread so that the nodes of a mesh
  // do not come back in step.
  const double spread = 0.75 + 0.5 * random_.uniform();
  const Duration wait = std::chrono::duration_cast<Duration>(redial_wait_ * spread);
  redial_wait_ = std::clamp(redial_wait_ * 2, std::min(kRedialWaitMin, options_.reconnect_wait_max),
                            options_.reconnect_wait_max);
  state_ = State::kAway;
  redial_timer_.set_after(loop_, wait, [this] { dial(); });
}

void NatsTransporter::fail_start(const Error& error) {
  state_ = State::kIdle;
  Completion done = std::move(start_done_);
  start_done_ = nullptr;
  done(error);
}

Result<> NatsTransporter::subscribe_first() {
  const Result<> outcome = connection_->subscribe_inbox(inbox_->subscription());
  if (!outcome.ok() || is_any_refused_) return outcome;
  const std::string any = subjects_->any_targeted(identity_.node_id);
  return connection_->subscribe_hot_types(any, any.find('*'));
}

void NatsTransporter::subscribe_rest() {
  is_any_refused_ = is_any_refused_ || is_about_any(connection_->last_complaint());
  Result<> outcome;
  if (is_any_refused_) outcome = subscribe_each_targeted();
  for (const PacketType type : kOrderedBroadcast) {
    if (outcome.ok()) outcome = connection_->subscribe_ordered(subjects_->broadcast(type), type);
  }
  if (outcome.ok()) {
    outcome = connection_->subscribe_hot(subjects_->broadcast(PacketType::kPing), {}, PacketType::kPing);
  }
  for (const Balanced& one : balanced_) {
    if (outcome.ok()) outcome = connection_->subscribe_hot(one.subject, one.queue, one.type);
  }
  if (!outcome.ok()) log_.debug(outcome.error().message());  // The loss that it tells of is under way.
  state_ = State::kSubscribing;
  send_echo();
}

// Permissions written for Moleculer nodes name the types one by one. Packets of different types may then
// overtake each other.
Result<> NatsTransporter::subscribe_each_targeted() {
  Result<> outcome;
  for (const PacketType type : kTargeted) {
    if (outcome.ok()) {
      outcome = connection_->subscribe_hot(subjects_->targeted(type, identity_.node_id), {}, type);
    }
  }
  return outcome;
}

bool NatsTransporter::is_about_any(std::string_view complaint) const {
  return complaint.find("\"" + subjects_->any_targeted(identity_.node_id) + "\"") != std::string_view::npos;
}

void NatsTransporter::become_ready() {
  state_ = State::kReady;
  redial_wait_ = Duration::zero();
  told_failure_.clear();
  discovered_servers_ = connection_->discovered_servers();
  log_.info("Connected to ", connection_->server_url(), ".");
  const std::shared_ptr<bool> alive = alive_;
  if (start_done_) {
    Completion done = std::move(start_done_);
    start_done_ = nullptr;
    done({});
  } else {
    listener_->on_reconnected();
  }
  std::vector<EarlyFrame> early = std::move(early_);
  if (!*alive) return;
  early_.clear();
  early_bytes_ = 0;
  for (const EarlyFrame& frame : early) {
    if (!*alive || state_ != State::kReady) return;
    listener_->on_frame({frame.type, frame.payload.view(), {}, frame.is_balanced});
  }
}

void NatsTransporter::on_message(PacketType type, BytesView payload, bool is_balanced) {
  if (payload.empty()) return;  // A probe.
  if (state_ == State::kReady) return listener_->on_frame({type, payload, {}, is_balanced});
  if (state_ != State::kOpening && state_ != State::kSubscribing) return;
  if (early_bytes_ + payload.size() > kEarlyBytesMax) return;
  early_bytes_ += payload.size();
  early_.push_back({type, is_balanced, {}});
  early_.back().payload.append(payload);
}

void NatsTransporter::on_inbox(std::string_view subject, bool no_responders) {
  const auto parsed = inbox_->parse(subject);
  if (!parsed.has_value()) return;
  if (parsed->kind == 'e') {
    echo_seen_ = std::max(echo_seen_, parsed->number);
    if (echo_seen_ < echo_sent_) return;
    if (state_ == State::kOpening) return subscribe_rest();
    if (state_ == State::kSubscribing) return become_ready();
    if (state_ == State::kStopping) return close();
    return;
  }
  if (no_responders && state_ == State::kReady) listener_->on_undelivered(parsed->node, parsed->correlation);
}

void NatsTransporter::on_complaint(const std::string& text) {
  if (is_about_any(text)) {
    if (std::exchange(is_any_refused_, true) || state_ == State::kOpening) return;  // Seen to.
    if (const Result<> outcome = subscribe_each_targeted(); !outcome.ok()) {
      log_.debug(outcome.error().message());
    }
    return;
  }
  if (start_done_ && text.find("\"_INBOX.") != std::string::npos) {
    const Error error = Error::broker_options(
        "transporter.nats: the server must permit this client to publish and subscribe to _INBOX.> (" + text +
        ").");
    connection_.reset();
    echo_timer_.cancel();
    return fail_start(error);
  }
  log_.error("The NATS server ", connection_->server_url(), " complains: ", text);
}

void NatsTransporter::on_lost(const Error& reason) {
  const State before = state_;
  connection_.reset();
  echo_timer_.cancel();
  early_.clear();
  early_bytes_ = 0;
  if (before == State::kStopping) return finish_stop();
  redial_later();
  if (before != State::kReady) return;
  log_.warn(reason.message());
  listener_->on_disconnected(reason);
}

void NatsTransporter::send_echo() {
  const Result<> sent = connection_->publish(inbox_->echo(++echo_sent_), nullptr, {});
  if (!sent.ok()) log_.debug(sent.error().message());  // The loss that it tells of is under way.
}

// Each interval one echo; the last one must have come back by the next.
void NatsTransporter::watch_server() {
  if (echo_seen_ < echo_sent_) {
    return on_lost(Error(ErrorClass::kBrokerDisconnected,
                         "The NATS server " + connection_->server_url() + " does not answer."));
  }
  send_echo();
  echo_timer_.set_after(loop_, options_.ping_interval, [this] { watch_server(); });
}

void NatsTransporter::stop(Completion done) {
  WEFT_ASSERT(loop_.is_current() && state_ != State::kStopping && state_ != State::kClosing);
  stop_done_ = std::move(done);
  dialling_.reset();
  redial_timer_.cancel();
  echo_timer_.cancel();
  if (start_done_) {
    loop_.post([abandoned = std::move(start_done_)]() mutable {
      abandoned(Error(ErrorClass::kBrokerDisconnected, "The NATS transporter was stopped."));
    });
    start_done_ = nullptr;
  }
  if (state_ == State::kReady) {
    state_ = State::kStopping;
    connection_->unsubscribe_all();  // Behind the echo the server tells others that we are gone.
    send_echo();
    stop_timer_.set_after(loop_, kFlushWaitMax, [this] { close(); });
    return;
  }
  close();
}

void NatsTransporter::close() {
  state_ = State::kClosing;
  if (connection_ == nullptr) {
    loop_.post([this, alive = alive_] {
      if (*alive) finish_stop();
    });
    return;
  }
  stop_timer_.set_after(loop_, kStopWaitMax - kFlushWaitMax, [this] { finish_stop(); });
  NatsConnection::close(std::move(connection_), [this, alive = alive_] {
    if (*alive) finish_stop();
  });
}

void NatsTransporter::finish_stop() {
  if (!stop_done_) return;
  stop_timer_.cancel();
  state_ = State::kIdle;
  listener_ = nullptr;
  early_.clear();
  early_bytes_ = 0;
  Completion done = std::move(stop_done_);
  stop_done_ = nullptr;
  done({});
}

Result<> NatsTransporter::publish(const char* subject, const char* reply, BytesView payload,
                                  std::string_view name) {
  if (state_ != State::kReady) return not_connected();
  if (subject == nullptr)
    return bad_name("The name", name, subject_name_fault(name).value_or("it is no name"));
  if (payload_bytes_max_ != 0 && payload.size() > payload_bytes_max_) {
    return Error(ErrorClass::kClient,
                 "A packet of " + std::to_string(payload.size()) +
                     " bytes is too large: the NATS server takes up to " +
                     std::to_string(payload_bytes_max_) + " bytes (its max_payload).",
                 "PACKET_TOO_LARGE",
                 Value{{"size", static_cast<std::int64_t>(payload.size())},
                       {"limit", static_cast<std::int64_t>(payload_bytes_max_)}})
        .with_code(413);
  }
  return connection_->publish(subject, reply, payload);
}

Result<> NatsTransporter::send(std::string_view node, PacketType type, BytesView payload,
                               std::string_view correlation) {
  if (state_ != State::kReady) return not_connected();
  const char* const subject = subjects_->targeted(type, node);
  const char* reply = nullptr;
  if (!correlation.empty() && subject != nullptr) reply = inbox_->reply(node, correlation);
  return publish(subject, reply, payload, node);
}

Result<> NatsTransporter::broadcast(PacketType type, BytesView payload) {
  if (state_ != State::kReady) return not_connected();
  return publish(subjects_->broadcast(type), nullptr, payload, {});
}

void NatsTransporter::probe(std::string_view node, BytesView pong) {
  if (state_ != State::kReady) return;
  const char* const subject = subjects_->targeted(PacketType::kPong, node);
  if (subject == nullptr) return;
  const Result<> sent = publish(subject, inbox_->probe(node), pong, node);
  if (!sent.ok()) log_.debug(sent.error().message());
}

void NatsTransporter::subscribe_balanced(std::span<const std::string> actions,
                                         std::span<const BalancedEvent> events) {
  if (!subjects_.has_value()) return;
  std::set<Balanced> wanted;
  for (const std::string& action : actions) {
    if (const char* const subject = subjects_->balanced_request(action)) {
      wanted.insert({subject, action, PacketType::kRequest});
    } else {
      log_.error(bad_name("Action", action, subject_name_fault(action).value_or("")).message());
    }
  }
  for (const BalancedEvent& event : events) {
    std::string subject = subjects_->balanced_event_subscription(event.group, event.pattern);
    if (!subject.empty()) {
      wanted.insert({std::move(subject), event.group, PacketType::kEvent});
    } else {
      log_.error(bad_name("Event", event.group + "." + event.pattern, "a blank or an empty part").message());
    }
  }
  std::vector<Balanced> gone, added;
  std::set_difference(balanced_.begin(), balanced_.end(), wanted.begin(), wanted.end(),
                      std::back_inserter(gone));
  std::set_difference(wanted.begin(), wanted.end(), balanced_.begin(), balanced_.end(),
                      std::back_inserter(added));
  balanced_ = std::move(wanted);
  if (state_ != State::kReady && state_ != State::kSubscribing) return;
  for (const Balanced& one : added) {
    const Result<> outcome = connection_->subscribe_hot(one.subject, one.queue, one.type);
    if (!outcome.ok()) log_.error(outcome.error().message());
  }
  for (const Balanced& one : gone) connection_->unsubscribe(one.subject, one.queue);
}

Result<> NatsTransporter::publish_balanced_request(std::string_view action, BytesView payload) {
  if (state_ != State::kReady) return not_connected();
  return publish(subjects_->balanced_request(action), nullptr, payload, action);
}

Result<> NatsTransporter::publish_balanced_event(std::string_view group, std::string_view event,
                                                 BytesView payload) {
  if (state_ != State::kReady) return not_connected();
  return publish(subjects_->balanced_event(group, event), nullptr, payload, event);
}

}  // namespace weft
