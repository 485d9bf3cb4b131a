#include "transporters/nats/nats_connection.h"

#include <nats/nats.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "transporters/nats/nats_library.h"

namespace weft {

namespace {

constexpr std::size_t kFlushBytes = 256UL << 10;  // Written before the end of the turn.
constexpr std::size_t kIdleBufferBytesMax = 1UL << 20;
constexpr std::int64_t kDrainTimeoutMs = 5000;
constexpr std::size_t kComplaintsMax = 256;  // Different ones that are told of.

struct MessageDeleter {
  void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
};
using MessagePtr = std::unique_ptr<natsMsg, MessageDeleter>;

}  // namespace

struct NatsConnection::HotSubscription {
  natsSubscription* subscription;
  std::string subject;
  std::string queue;
  PacketType type;          // Of all its messages; or, with type_at, what each one's subject says.
  std::size_t type_at = 0;  // Where the subject says it; 0: nowhere.
  bool is_ending = false;   // Told to end; what was under way still comes.
  bool is_ended = false;
};

NatsConnection::NatsConnection(EventLoop& loop, std::unique_ptr<NatsLibrary> library, Handler& handler,
                               NatsOptions options)
    : loop_(loop),
      handler_(handler),
      options_(std::move(options)),
      library_(std::move(library)),
      life_(std::make_shared<Life>(Life{this})),
      mailbox_(library_->mailbox) {
  mailbox_->attach(loop_, *this);
  payload_bytes_max_ =
      static_cast<std::size_t>(std::max<std::int64_t>(natsConnection_GetMaxPayload(library_->connection), 0));
  char url[512];
  if (natsConnection_GetConnectedUrl(library_->connection, url, sizeof url) == NATS_OK) {
    server_url_ = without_credentials(url);
  }
}

NatsConnection::~NatsConnection() {
  if (library_ == nullptr) return;
  loop_.run_blocking([library = release()]() mutable { library.reset(); }, [] {});
}

void NatsConnection::close(std::unique_ptr<NatsConnection> connection, EventLoop::Callback done) {
  EventLoop& loop = connection->loop_;
  loop.run_blocking([library = connection->release()]() mutable { library.reset(); }, std::move(done));
}

// From here on the loop's thread does not touch the library's objects.
std::unique_ptr<NatsLibrary> NatsConnection::release() {
  // The library would wait for what it could not write.
  if (!is_over_ && is_write_wanted_) library_->process_write();
  life_->connection = nullptr;
  mailbox_->detach();
  watch_.reset();
  is_over_ = true;
  return std::move(library_);
}

bool NatsConnection::watch(Poller& poller) {
  watch_ = poller.watch(static_cast<int>(library_->socket), *this);
  if (watch_ != nullptr) watch_->set_interest(true, false);
  return watch_ != nullptr;
}

std::vector<std::string> NatsConnection::discovered_servers() const {
  char** urls = nullptr;
  int count = 0;
  if (natsConnection_GetDiscoveredServers(library_->connection, &urls, &count) != NATS_OK) return {};
  std::vector<std::string> servers;
  for (int i = 0; i < count; ++i) {
    servers.emplace_back(urls[i]);
    std::free(urls[i]);
  }
  std::free(urls);
  return servers;
}

Result<> NatsConnection::publish(const char* subject, const char* reply, BytesView payload) {
  if (is_over_) return nats_disconnected("The connection to the NATS server is lost.");
  if (queued_bytes_ > options_.queue_bytes_max) {
    return Error(ErrorClass::kQueueIsFull, "The queue to the NATS server is full.");
  }
  const int bytes = static_cast<int>(payload.size());
  const natsStatus status =
      reply == nullptr
          ? natsConnection_Publish(library_->connection, subject, payload.data(), bytes)
          : natsConnection_PublishRequest(library_->connection, subject, reply, payload.data(), bytes);
  if (status != NATS_OK)
    return nats_disconnected("Publishing to NATS failed (" + nats_error_text(status) + ").");
  queued_bytes_ += payload.size() + std::strlen(subject) + 16;
  if (queued_bytes_ > kFlushBytes && !is_blocked_) flush();
  return {};
}

Result<> NatsConnection::add_hot(const std::string& subject, const std::string& queue, HotSubscription made) {
  const natsStatus status =
      queue.empty() ? natsConnection_SubscribeSync(&made.subscription, library_->connection, subject.c_str())
                    : natsConnection_QueueSubscribeSync(&made.subscription, library_->connection,
                                                        subject.c_str(), queue.c_str());
  if (status != NATS_OK) {
    return nats_disconnected("Subscribing to " + subject + " failed (" + nats_error_text(status) + ").");
  }
  made.subject = subject;
  made.queue = queue;
  library_->subscriptions.push_back(made.subscription);
  // A read is drained at once: limits would only lose messages.
  natsSubscription_SetPendingLimits(made.subscription, -1, -1);
  hot_.push_back(std::make_unique<HotSubscription>(std::move(made)));
  return {};
}

Result<> NatsConnection::subscribe_hot(const std::string& subject, const std::string& queue,
                                       PacketType type) {
  return add_hot(subject, queue, {.subscription = nullptr, .subject = {}, .queue = {}, .type = type});
}

Result<> NatsConnection::subscribe_hot_types(const std::string& subject, std::size_t type_at) {
  return add_hot(
      subject, {},
      {.subscription = nullptr, .subject = {}, .queue = {}, .type = PacketType::kPong, .type_at = type_at});
}

Result<> NatsConnection::subscribe_ordered(const std::string& subject, PacketType type) {
  return subscribe_async(subject, false, type);
}

Result<> NatsConnection::subscribe_inbox(const std::string& subject) {
  return subscribe_async(subject, true, PacketType::kPong);
}

Result<> NatsConnection::subscribe_async(const std::string& subject, bool is_inbox, PacketType type) {
  // Belongs to the library until it says that no more messages come.
  struct Tap {
    std::shared_ptr<NatsMailbox> mailbox;
    bool is_inbox;
    PacketType type;
  };
  auto tap = std::make_unique<Tap>(Tap{mailbox_, is_inbox, type});
  natsSubscription* created = nullptr;
  const natsStatus status = natsConnection_Subscribe(
      &created, library_->connection, subject.c_str(),
      [](natsConnection*, natsSubscription*, natsMsg* received, void* closure) {
        const MessagePtr message(received);
        const Tap& to = *static_cast<Tap*>(closure);
        if (to.is_inbox) {
          to.mailbox->put(
              natsMsg_IsNoResponders(received) ? NatsMailbox::Kind::kNoResponders : NatsMailbox::Kind::kInbox,
              to.type, natsMsg_GetSubject(received));
        } else {
          const auto bytes = static_cast<std::size_t>(natsMsg_GetDataLength(received));
          to.mailbox->put(NatsMailbox::Kind::kFrame, to.type, {natsMsg_GetData(received), bytes});
        }
      },
      tap.get());
  if (status != NATS_OK) {
    return nats_disconnected("Subscribing to " + subject + " failed (" + nats_error_text(status) + ").");
  }
  library_->subscriptions.push_back(created);
  if (is_inbox) library_->inbox = created;
  natsSubscription_SetOnCompleteCB(
      created, [](void* closure) { delete static_cast<Tap*>(closure); }, tap.release());
  return {};
}

void NatsConnection::unsubscribe(const std::string& subject, const std::string& queue) {
  for (const auto& one : hot_) {
    if (one->is_ending || one->subject != subject || one->queue != queue) continue;
    one->is_ending = true;
    if (natsSubscription_DrainTimeout(one->subscription, kDrainTimeoutMs) != NATS_OK) {
      natsSubscription_Unsubscribe(one->subscription);
    }
    return;
  }
}

void NatsConnection::unsubscribe_all() {
  for (natsSubscription* one : library_->subscriptions) {
    if (one != library_->inbox) natsSubscription_Unsubscribe(one);
  }
}

void NatsConnection::on_readable() {
  const std::shared_ptr<Life> life = life_;
  library_->process_read();
  drain_hot();
  if (life->connection != nullptr) tell_if_lost();
}

void NatsConnection::on_writable() {
  flush();
}

void NatsConnection::drain_hot() {
  std::uint64_t total = 0;
  natsConnection_GetStats(library_->connection, library_->statistics);
  natsStatistics_GetCounts(library_->statistics, &total, nullptr, nullptr, nullptr, nullptr);
  std::uint64_t expected = total - received_;  // Ordered ones among them; then all hot ones are asked.
  received_ = total;
  if (expected == 0) return;

  // The vector may grow meanwhile, but nothing new is in what it gains.
  const std::size_t count = hot_.size();
  const std::size_t first = hot_last_;
  for (std::size_t i = 0; i < count && expected > 0; ++i) {
    const std::size_t at = (first + i) % count;
    const std::uint64_t before = expected;
    if (!drain_one(*hot_[at], expected)) return;
    if (expected < before) hot_last_ = at;
  }
  forget_ended();
}

bool NatsConnection::drain_one(HotSubscription& from, std::uint64_t& expected) {
  const std::shared_ptr<Life> life = life_;
  while (true) {
    natsMsg* received = nullptr;
    const natsStatus status = natsSubscription_NextMsg(&received, from.subscription, 0);
    if (status != NATS_OK) {
      if (from.is_ending && status != NATS_TIMEOUT) from.is_ended = true;
      return true;
    }
    if (expected > 0) --expected;
    PacketType type = from.type;
    bool is_ours = true;
    if (from.type_at > 0) {
      std::string_view token = natsMsg_GetSubject(received);
      token = token.substr(std::min(from.type_at, token.size()));
      const auto named = packet_type_from(token.substr(0, token.find('.')));
      type = named.value_or(type);
      is_ours = named.has_value();
    }
    const auto bytes = static_cast<std::size_t>(natsMsg_GetDataLength(received));
    if (is_ours) {
      message_.clear();
      if (message_.capacity() > kIdleBufferBytesMax) message_ = Buffer();
      message_.append({natsMsg_GetData(received), bytes});
    }
    library_->discard(received, bytes);
    if (!is_ours) continue;
    handler_.on_message(type, message_.view(), !from.queue.empty());
    if (life->connection == nullptr) return false;
  }
}

void NatsConnection::forget_ended() {
  for (std::size_t i = 0; i < hot_.size();) {
    if (!hot_[i]->is_ended) {
      ++i;
      continue;
    }
    std::erase(library_->subscriptions, hot_[i]->subscription);
    natsSubscription_Destroy(hot_[i]->subscription);
    hot_.erase(hot_.begin() + static_cast<std::ptrdiff_t>(i));
    hot_last_ = 0;
  }
}

void NatsConnection::on_mail() {
  NatsMailbox::Content content = std::move(reading_);
  mailbox_->take(content);
  const std::shared_ptr<Life> life = life_;
  for (const NatsMailbox::Item& item : content.items) {
    const BytesView text(content.bytes.data() + item.offset, item.bytes);
    if (item.kind == NatsMailbox::Kind::kFrame) {
      handler_.on_message(item.type, text, false);
    } else if (item.kind == NatsMailbox::Kind::kComplaint) {
      tell_complaint(std::string(text));
    } else {
      handler_.on_inbox(text, item.kind == NatsMailbox::Kind::kNoResponders);
    }
    if (life->connection == nullptr) return;
  }
  content.clear();
  reading_ = std::move(content);
}

void NatsConnection::on_write_wanted(bool wanted) {
  is_write_wanted_ = wanted;
  if (wanted) flush_later();
}

void NatsConnection::flush_later() {
  if (is_blocked_ || std::exchange(is_flush_due_, true)) return;
  loop_.defer([life = life_] {
    if (life->connection == nullptr) return;
    life->connection->is_flush_due_ = false;
    if (!life->connection->is_blocked_) life->connection->flush();
  });
}

void NatsConnection::flush() {
  if (is_over_ || !is_write_wanted_) return;
  const bool was_blocked = is_blocked_;
  library_->process_write();
  is_blocked_ = is_write_wanted_ && !library_->is_stopped;
  queued_bytes_ = 0;
  if (is_blocked_) {
    queued_bytes_ = static_cast<std::size_t>(std::max(natsConnection_Buffered(library_->connection), 0));
  }
  if (is_blocked_ != was_blocked) watch_->set_interest(true, is_blocked_);
  tell_if_lost();
}

// Posted, for it is seen in calls from above as well.
void NatsConnection::tell_if_lost() {
  if (!library_->is_stopped || std::exchange(is_over_, true)) return;
  watch_.reset();
  const char* text = nullptr;
  const natsStatus status = natsConnection_GetLastError(library_->connection, &text);
  std::string reason = "The connection to the NATS server " + server_url_ + " is lost";
  if (status != NATS_OK && text != nullptr) reason.append(" (").append(text).append(")");
  loop_.post([life = life_, error = nats_disconnected(reason + ".")] {
    if (life->connection != nullptr) life->connection->handler_.on_lost(error);
  });
}

// A client that goes on doing what is refused is told so each time.
void NatsConnection::tell_complaint(const std::string& text) {
  if (complaints_.size() >= kComplaintsMax || !complaints_.insert(text).second) return;
  handler_.on_complaint(text);
}

std::string NatsConnection::last_complaint() const {
  const char* text = nullptr;
  const bool is_any = natsConnection_GetLastError(library_->connection, &text) != NATS_OK;
  return is_any && text != nullptr ? text : std::string();
}

}  // namespace weft
