#include <nats/nats.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "transporters/nats/nats_connection.h"
#include "transporters/nats/nats_library.h"
#include "transporters/nats/nats_signals.h"

namespace weft {

namespace {

struct OptionsDeleter {
  void operator()(natsOptions* options) const { natsOptions_Destroy(options); }
};
using OptionsPtr = std::unique_ptr<natsOptions, OptionsDeleter>;

// Of the callbacks that come on a thread of the library, in turn; the one that says "closed" is the last.
using Complaints = std::shared_ptr<NatsMailbox>;

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

void on_error(natsConnection*, natsSubscription*, natsStatus error, void* closure) {
  natsStatus last = NATS_OK;
  const char* text = nats_GetLastError(&last);
  if (last != error || text == nullptr || *text == '\0') text = natsStatus_GetText(error);
  (*static_cast<Complaints*>(closure))->put(NatsMailbox::Kind::kComplaint, PacketType::kPong, text);
}

void on_closed(natsConnection*, void* closure) {
  delete static_cast<Complaints*>(closure);
}

// What the caller of dial() holds: dropping it abandons the job, which the worker goes on to hold.
template <typename Job>
std::shared_ptr<Job> abandoned_when_dropped(std::shared_ptr<Job> job) {
  Job* const raw = job.get();
  return std::shared_ptr<Job>(raw, [kept = std::move(job)](Job* dropped) { dropped->is_abandoned = true; });
}

}  // namespace

struct NatsConnection::DialJob {
  DialSettings settings;
  std::unique_ptr<NatsLibrary> library;
  natsStatus status = NATS_OK;
  std::string error_text;
  std::atomic<bool> is_abandoned{false};

  void run();
  [[nodiscard]] Error error() const;

 private:
  [[nodiscard]] natsStatus configure(natsOptions* to, Complaints* complaints);
};

natsStatus NatsConnection::DialJob::configure(natsOptions* to, Complaints* complaints) {
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
  if (library->is_secure) {
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
  set(natsOptions_SetErrorHandler(to, on_error, complaints));
  set(natsOptions_SetClosedCB(to, on_closed, complaints));
  set(natsOptions_SetEventLoop(
      to, library.get(),
      [](void** user_data, void* loop, natsConnection*, natsSock socket) {
        auto* const self = static_cast<NatsLibrary*>(loop);
        self->socket = socket;
        *user_data = self;
        return NATS_OK;
      },
      [](void* user_data, bool is_added) {
        if (!is_added) static_cast<NatsLibrary*>(user_data)->is_stopped = true;
        return NATS_OK;
      },
      [](void* user_data, bool is_added) {
        static_cast<NatsLibrary*>(user_data)->mailbox->want_write(is_added);
        return NATS_OK;
      },
      [](void*) { return NATS_OK; }));
  return s;
}

// On a worker.
void NatsConnection::DialJob::run() {
  open_nats_library();
  library = std::make_unique<NatsLibrary>();
  library->is_secure = is_tls(settings.options, settings.servers);
  const BrokenPipeGuard guard(library->is_secure);
  auto complaints = std::make_unique<Complaints>(library->mailbox);
  natsOptions* created = nullptr;
  status = natsOptions_Create(&created);
  const OptionsPtr nats_options(created);
  if (status == NATS_OK) status = configure(created, complaints.get());
  if (status == NATS_OK) status = natsConnection_Connect(&library->connection, created);
  if (library->connection != nullptr) (void)complaints.release();  // on_closed() frees it.
  if (status == NATS_OK) status = natsStatistics_Create(&library->statistics);
  if (status != NATS_OK) error_text = nats_error_text(status);
  if (is_abandoned) library.reset();
}

Error NatsConnection::DialJob::error() const {
  switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
      return Error::broker_options(
          "transporter.nats: the server refuses user, password, token, credentials or nkey (" + error_text +
          ").");
    case NATS_SSL_ERROR:
    case NATS_SECURE_CONNECTION_WANTED:
    case NATS_SECURE_CONNECTION_REQUIRED:
      return Error::broker_options("transporter.nats.tls: no secure connection (" + error_text + ").");
    case NATS_INVALID_ARG:
    case NATS_ADDRESS_MISSING:
      return Error::broker_options("transporter.nats: " + error_text + ".");
    default:
      return nats_disconnected("No NATS server can be reached at " + shown(settings.servers) + " (" +
                               error_text + ").");
  }
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
        if (job->status != NATS_OK) return done(job->error());
        std::unique_ptr<NatsConnection> connection(
            new NatsConnection(loop, std::move(job->library), handler, job->settings.options));
        if (!connection->watch(poller)) {
          return done(nats_disconnected("The loop cannot watch the connection to the NATS server."));
        }
        done(std::move(connection));
      });
  return abandoned_when_dropped(std::move(job));
}

}  // namespace weft
