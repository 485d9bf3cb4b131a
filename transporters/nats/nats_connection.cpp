#include "transporters/nats/nats_connection.h"

#include <nats/nats.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace weft {

namespace {

constexpr std::size_t kFlushBytes = 256UL << 10;      // Written before the end of the turn.
constexpr std::size_t kMailboxBytesMax = 64UL << 20;  // What an idle loop lets pile up is dropped above it.
constexpr std::size_t kIdleBufferBytesMax = 1UL << 20;
constexpr std::int64_t kDrainTimeoutMs = 5000;
constexpr std::size_t kGarbageMax = 256;
constexpr std::size_t kGarbageBytesMax = 128UL << 10;

Error disconnected(std::string text) {
  return Error(ErrorClass::kBrokerDisconnected, std::move(text));
}

std::string last_error_text(natsStatus status) {
  const char* detail = nats_GetLastError(nullptr);
  std::string text = natsStatus_GetText(status);
  if (detail != nullptr && *detail != '\0' && text != detail) text.append(": ").append(detail);
  return text;
}

struct OptionsDeleter {
  void operator()(natsOptions* options) const { natsOptions_Destroy(options); }
};
using OptionsPtr = std::unique_ptr<natsOptions, OptionsDeleter>;
struct MessageDeleter {
  void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
};
using MessagePtr = std::unique_ptr<natsMsg, MessageDeleter>;

// A URL may hold a password.
std::string without_credentials(std::string url) {
  const std::size_t scheme = url.find("://");
  const std::size_t at = url.rfind('@');
  if (scheme != std::string::npos && at != std::string::npos && at > scheme) {
    url.erase(scheme + 3, at + 1 - (scheme + 3));
  }
  return url;
}

std::string shown(const std::vector<std::string>& servers) {
  std::string text;
  for (const std::string& url : servers) text += (text.empty() ? "" : ", ") + without_credentials(url);
  return text;
}

bool is_tls(const NatsOptions& options, const std::vector<std::string>& servers) {
  return options.tls || std::any_of(servers.begin(), servers.end(),
                                    [](const std::string& url) { return url.starts_with("tls://"); });
}

std::int64_t whole_ms(Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration).count();
}

}  // namespace

// What threads of the library hand over, in order of arrival. Detached while the connection is made and
// destroyed.
struct NatsConnection::Mailbox : std::enable_shared_from_this<Mailbox> {
  enum class Kind : std::uint8_t { kFrame, kInbox, kNoResponders };
  struct Item {
    Kind kind;
    PacketType type;
    std::size_t offset;
    std::size_t bytes;
  };
  struct Content {
    Buffer bytes;
    std::vector<Item> items;
    void clear() {
      bytes.clear();
      items.clear();
      if (bytes.capacity() > kIdleBufferBytesMax) bytes = Buffer();
    }
  };

  // Any thread.
  void put(Kind kind, PacketType type, BytesView text) {
    const std::lock_guard lock(mutex);
    if (loop == nullptr || waiting.bytes.size() > kMailboxBytesMax) return;
    waiting.items.push_back({kind, type, waiting.bytes.size(), text.size()});
    waiting.bytes.append(text);
    if (std::exchange(is_called, true)) return;
    loop->post([self = shared_from_this()] {
      if (self->reader != nullptr) self->reader->read_mailbox();
    });
  }
  // Any thread: the loop's as a rule, and that of an ending subscription.
  void want_write(bool wanted) {
    {
      const std::lock_guard lock(mutex);
      if (loop == nullptr) return;
      if (!loop->is_current()) {
        return loop->post([self = shared_from_this(), wanted] {
          if (self->reader != nullptr) self->reader->want_write(wanted);
        });
      }
    }
    reader->want_write(wanted);
  }

  // Loop thread.
  void attach(EventLoop& to_loop, NatsConnection& to_reader) {
    reader = &to_reader;
    const std::lock_guard lock(mutex);
    loop = &to_loop;
  }
  void detach() {
    reader = nullptr;
    const std::lock_guard lock(mutex);
    loop = nullptr;
  }
  void take(Content& to) {
    const std::lock_guard lock(mutex);
    std::swap(to, waiting);
    is_called = false;
  }

  NatsConnection* reader = nullptr;  // Loop thread only.
  Content reading;                   // Loop thread only.
  std::mutex mutex;                  // Guards what follows.
  EventLoop* loop = nullptr;
  Content waiting;
  bool is_called = false;
};

// The library's connection, its subscriptions, and what its callbacks need. Destroying it may block.
struct NatsConnection::Library {
  ~Library() {
    if (connection == nullptr) return;
    natsConnection_Close(connection);
    sweep();
    for (natsSubscription* subscription : subscriptions) natsSubscription_Destroy(subscription);
    natsStatistics_Destroy(statistics);
    natsConnection_Destroy(connection);
  }

  // The library wakes a thread of its own for each message that is freed one by one.
  void discard(natsMsg* message, std::size_t bytes) {
    garbage.push_back(message);
    garbage_bytes += bytes;
    if (garbage.size() >= kGarbageMax || garbage_bytes >= kGarbageBytesMax) sweep();
  }
  void sweep() {
    for (natsMsg* message : garbage) natsMsg_Destroy(message);
    garbage.clear();
    garbage_bytes = 0;
  }

  natsConnection* connection = nullptr;
  natsStatistics* statistics = nullptr;
  std::vector<natsSubscription*> subscriptions;
  natsSubscription* inbox = nullptr;  // One of them.
  natsSock socket = -1;
  bool is_stopped = false;  // The library has stopped polling: the connection is lost.
  const std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  std::vector<natsMsg*> garbage;
  std::size_t garbage_bytes = 0;
};

struct NatsConnection::HotSubscription {
  natsSubscription* subscription;
  std::string subject;
  std::string queue;
  PacketType type;  // Of all its messages; or, with type_at, what each one's subject says.
  std::size_t type_at = 0;
  std::vector<PacketType> ordered;  // Not ours: another subscription has them.
  bool is_ending = false;           // Told to end; what was under way still comes.
  bool is_ended = false;
};

struct NatsConnection::DialJob {
  DialSettings settings;
  std::unique_ptr<Library> library;
  natsStatus status = NATS_OK;
  std::string error_text;
  std::atomic<bool> is_abandoned{false};

  void run();

 private:
  [[nodiscard]] natsStatus configure(natsOptions* to);
};

namespace {

// What the caller of dial() holds: dropping it abandons the job, which the worker goes on to hold.
template <typename Job>
std::shared_ptr<Job> abandoned_when_dropped(std::shared_ptr<Job> job) {
  Job* const raw = job.get();
  return std::shared_ptr<Job>(raw, [kept = std::move(job)](Job* dropped) { dropped->is_abandoned = true; });
}

}  // namespace

natsStatus NatsConnection::DialJob::configure(natsOptions* to) {
  const NatsOptions& options = settings.options;
  natsStatus s = NATS_OK;
  const auto set = [&s](natsStatus result) {
    if (s == NATS_OK) s = result;
  };
  std::vector<const char*> urls;
  for (const std::string& url : settings.servers) urls.push_back(url.c_str());
  set(natsOptions_SetServers(to, urls.data(), static_cast<int>(urls.size())));
  set(natsOptions_SetNoRandomize(to, true));
  set(natsOptions_SetName(to, settings.client_name.c_str()));
  set(natsOptions_SetTimeout(to, whole_ms(options.connect_timeout)));
  if (!options.user.empty()) {
    set(natsOptions_SetUserInfo(to, options.user.c_str(), options.password.c_str()));
  }
  if (!options.token.empty()) set(natsOptions_SetToken(to, options.token.c_str()));
  if (!options.credentials_file.empty()) {
    set(natsOptions_SetUserCredentialsFromFiles(to, options.credentials_file.c_str(), nullptr));
  }
  if (!options.nkey.empty()) {
    set(natsOptions_SetNKeyFromSeed(to, options.nkey.c_str(), options.nkey_seed_file.c_str()));
  }
  if (is_tls(options, settings.servers)) {
    set(natsOptions_SetSecure(to, true));
    if (!options.tls_ca_file.empty()) {
      set(natsOptions_LoadCATrustedCertificates(to, options.tls_ca_file.c_str()));
    }
    if (!options.tls_cert_file.empty()) {
      set(natsOptions_LoadCertificatesChain(to, options.tls_cert_file.c_str(), options.tls_key_file.c_str()));
    }
    if (!options.tls_server_name.empty()) {
      set(natsOptions_SetExpectedHostname(to, options.tls_server_name.c_str()));
    }
    set(natsOptions_SkipServerVerification(to, !options.tls_verify));
  }
  // A connection ends with its socket, and has no thread of its own.
  set(natsOptions_SetAllowReconnect(to, false));
  set(natsOptions_SetPingInterval(to, 0));
  set(natsOptions_SetSendAsap(to, true));
  set(natsOptions_UseGlobalMessageDelivery(to, true));
  set(natsOptions_SetIOBufSize(to, static_cast<int>(settings.read_bytes)));
  set(natsOptions_SetErrorHandler(  // The default one prints; tell_complaint() has the same news.
      to, [](natsConnection*, natsSubscription*, natsStatus, void*) {}, nullptr));
  set(natsOptions_SetEventLoop(
      to, library.get(),
      [](void** user_data, void* loop, natsConnection*, natsSock socket) {
        auto* const self = static_cast<Library*>(loop);
        self->socket = socket;
        *user_data = self;
        return NATS_OK;
      },
      [](void* user_data, bool is_added) {
        if (!is_added) static_cast<Library*>(user_data)->is_stopped = true;
        return NATS_OK;
      },
      [](void* user_data, bool is_added) {
        static_cast<Library*>(user_data)->mailbox->want_write(is_added);
        return NATS_OK;
      },
      [](void*) { return NATS_OK; }));
  return s;
}

// On a worker.
void NatsConnection::DialJob::run() {
  library = std::make_unique<Library>();
  natsOptions* created = nullptr;
  status = natsOptions_Create(&created);
  const OptionsPtr nats_options(created);
  if (status == NATS_OK) status = configure(created);
  if (status == NATS_OK) status = natsConnection_Connect(&library->connection, created);
  if (status == NATS_OK) status = natsStatistics_Create(&library->statistics);
  if (status != NATS_OK) error_text = last_error_text(status);
  if (is_abandoned) library.reset();
}

std::shared_ptr<NatsConnection::DialJob> NatsConnection::dial(EventLoop& loop, Poller& poller,
                                                              DialSettings settings, Handler& handler,
                                                              DialDone done) {
  auto job = std::make_shared<DialJob>();
  job->settings = std::move(settings);
  loop.run_blocking(
      [job] {
        if (!job->is_abandoned) job->run();
      },
      [job, &loop, &poller, &handler, done = std::move(done)]() mutable {
        if (job->is_abandoned) return;
        if (job->status == NATS_OK) {
          std::unique_ptr<NatsConnection> connection(
              new NatsConnection(loop, std::move(job->library), handler, job->settings.options));
          if (!connection->watch(poller)) {
            return done(disconnected("The loop cannot watch the connection to the NATS server."));
          }
          return done(std::move(connection));
        }
        switch (job->status) {
          case NATS_CONNECTION_AUTH_FAILED:
            return done(
                Error::broker_options("transporter.nats: the server refuses user, password, token, "
                                      "credentials or nkey (" +
                                      job->error_text + ")."));
          case NATS_SSL_ERROR:
          case NATS_SECURE_CONNECTION_WANTED:
          case NATS_SECURE_CONNECTION_REQUIRED:
            return done(Error::broker_options("transporter.nats.tls: no secure connection (" +
                                              job->error_text + ")."));
          case NATS_INVALID_ARG:
          case NATS_ADDRESS_MISSING:
            return done(Error::broker_options("transporter.nats: " + job->error_text + "."));
          default:
            return done(disconnected("No NATS server can be reached at " + shown(job->settings.servers) +
                                     " (" + job->error_text + ")."));
        }
      });
  return abandoned_when_dropped(std::move(job));
}

NatsConnection::NatsConnection(EventLoop& loop, std::unique_ptr<Library> library, Handler& handler,
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
std::unique_ptr<NatsConnection::Library> NatsConnection::release() {
  // The library would wait for what it could not write.
  if (!is_over_ && is_write_wanted_) natsConnection_ProcessWriteEvent(library_->connection);
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
  if (is_over_) return disconnected("The connection to the NATS server is lost.");
  if (queued_bytes_ > options_.queue_bytes_max) {
    return Error(ErrorClass::kQueueIsFull, "The queue to the NATS server is full.");
  }
  const int bytes = static_cast<int>(payload.size());
  const natsStatus status =
      reply == nullptr
          ? natsConnection_Publish(library_->connection, subject, payload.data(), bytes)
          : natsConnection_PublishRequest(library_->connection, subject, reply, payload.data(), bytes);
  if (status != NATS_OK) return disconnected("Publishing to NATS failed (" + last_error_text(status) + ").");
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
    return disconnected("Subscribing to " + subject + " failed (" + last_error_text(status) + ").");
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
  return add_hot(subject, queue,
                 {.subscription = nullptr, .subject = {}, .queue = {}, .type = type, .ordered = {}});
}

Result<> NatsConnection::subscribe_hot_types(const std::string& subject, std::size_t type_at,
                                             std::span<const PacketType> ordered) {
  return add_hot(subject, {},
                 {.subscription = nullptr,
                  .subject = {},
                  .queue = {},
                  .type = PacketType::kPong,
                  .type_at = type_at,
                  .ordered = {ordered.begin(), ordered.end()}});
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
    std::shared_ptr<Mailbox> mailbox;
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
              natsMsg_IsNoResponders(received) ? Mailbox::Kind::kNoResponders : Mailbox::Kind::kInbox,
              to.type, natsMsg_GetSubject(received));
        } else {
          const auto bytes = static_cast<std::size_t>(natsMsg_GetDataLength(received));
          to.mailbox->put(Mailbox::Kind::kFrame, to.type, {natsMsg_GetData(received), bytes});
        }
      },
      tap.get());
  if (status != NATS_OK) {
    return disconnected("Subscribing to " + subject + " failed (" + last_error_text(status) + ").");
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
  natsConnection_ProcessReadEvent(library_->connection);
  drain_hot();
  if (life->connection != nullptr) tell_complaint();
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
      is_ours = named.has_value() &&
                std::find(from.ordered.begin(), from.ordered.end(), *named) == from.ordered.end();
    }
    const auto bytes = static_cast<std::size_t>(natsMsg_GetDataLength(received));
    if (is_ours) {
      message_.clear();
      if (message_.capacity() > kIdleBufferBytesMax) message_ = Buffer();
      message_.append({natsMsg_GetData(received), bytes});
    }
    library_->discard(received, bytes);
    if (!is_ours) continue;
    handler_.on_message(type, message_.view());
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

void NatsConnection::read_mailbox() {
  const std::shared_ptr<Mailbox> mailbox = mailbox_;
  Mailbox::Content& content = mailbox->reading;
  mailbox->take(content);
  const std::shared_ptr<Life> life = life_;
  for (const Mailbox::Item& item : content.items) {
    const BytesView text(content.bytes.data() + item.offset, item.bytes);
    if (item.kind == Mailbox::Kind::kFrame) {
      handler_.on_message(item.type, text);
    } else {
      handler_.on_inbox(text, item.kind == Mailbox::Kind::kNoResponders);
    }
    if (life->connection == nullptr) return;
  }
  content.clear();
}

void NatsConnection::want_write(bool wanted) {
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
  natsConnection_ProcessWriteEvent(library_->connection);
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
  loop_.post([life = life_, error = disconnected(reason + ".")] {
    if (life->connection != nullptr) life->connection->handler_.on_lost(error);
  });
}

// Among what was read may have been an error that leaves the connection standing.
void NatsConnection::tell_complaint() {
  const char* text = nullptr;
  if (natsConnection_GetLastError(library_->connection, &text) == NATS_OK || text == nullptr) return;
  if (library_->is_stopped || complaint_ == text) return;
  complaint_ = text;
  handler_.on_complaint(complaint_);
}

}  // namespace weft
