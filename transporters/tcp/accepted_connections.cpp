#include "transporters/tcp/accepted_connections.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "lib/base/assert.h"
#include "transporters/tcp/frame.h"

namespace weft {

namespace {
constexpr Duration kWarningPause = std::chrono::seconds(1);

// An IPv4 peer of a socket that takes both looks like "::ffff:10.0.0.1".
std::string plain_host(std::string host) {
  constexpr std::string_view kMapped = "::ffff:";
  if (host.starts_with(kMapped) && host.find('.') != std::string::npos) host.erase(0, kMapped.size());
  return host;
}
}  // namespace

struct AcceptedConnections::Connection final : Stream::Handler {
  Connection(AcceptedConnections& owner, std::unique_ptr<Stream> accepted)
      : set(owner),
        stream(std::move(accepted)),
        remote_host(plain_host(stream->remote_address().host)),
        decoder(owner.options_.frame_bytes_max) {
    stream->set_handler(*this);
  }
  ~Connection() {
    set.partial_bytes_ -= partial_bytes;
    if (gone != nullptr) *gone = true;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void on_data(BytesView bytes) override {
    bool is_gone = false;
    bool is_any_whole = false;
    gone = &is_gone;
    const Result<> fed = decoder.feed(bytes, [&](PacketType type, BytesView payload) {
      has_spoken = true;
      is_any_whole = true;
      set.on_frame_({.type = type, .payload = payload, .remote_host = remote_host});
      return !is_gone;
    });
    if (is_gone) return;
    gone = nullptr;
    if (fed.ok()) return set.note_partial(*this, is_any_whole);
    set.warn(remote_host, fed.error().message());
    set.drop(*this);
  }
  void on_closed(const Error& reason) override {
    set.log_.debug("the connection from ", remote_host, " ended: ", reason.message());
    set.drop(*this);
  }

  AcceptedConnections& set;
  std::unique_ptr<Stream> stream;
  const std::string remote_host;
  FrameDecoder decoder;
  bool has_spoken = false;
  std::size_t partial_bytes = 0;  // Of a frame under way, and since when.
  Instant partial_since{};
  bool* gone = nullptr;  // Set while frames are handed on, which may end in our destruction.
};

AcceptedConnections::AcceptedConnections(EventLoop& loop, Logger log, AcceptedOptions options,
                                         FrameCallback on_frame)
    : loop_(loop), log_(std::move(log)), options_(options), on_frame_(std::move(on_frame)) {}
AcceptedConnections::~AcceptedConnections() = default;

void AcceptedConnections::add(std::unique_ptr<Stream> stream) {
  if (connections_.size() >= options_.connections_max && !make_room()) {
    warn(stream->remote_address().host, "refused, there are too many connections");
    return;
  }
  connections_.emplace_back(*this, std::move(stream));
}

void AcceptedConnections::close_all() {
  connections_.clear();
}

// A node's first frame follows its connection at once, so who is silent is the least likely to be one.
bool AcceptedConnections::make_room() {
  const auto silent = std::find_if(connections_.begin(), connections_.end(),
                                   [](const Connection& each) { return !each.has_spoken; });
  if (silent == connections_.end()) return false;
  connections_.erase(silent);
  return true;
}

void AcceptedConnections::note_partial(Connection& connection, bool is_new_frame) {
  const std::size_t bytes = connection.decoder.held_bytes();
  if (is_new_frame || connection.partial_bytes == 0) connection.partial_since = loop_.now();
  partial_bytes_ = partial_bytes_ - connection.partial_bytes + bytes;
  connection.partial_bytes = bytes;
  while (partial_bytes_ > options_.partial_bytes_max) {
    Connection* oldest = nullptr;
    for (Connection& each : connections_) {
      if (each.partial_bytes == 0) continue;
      if (oldest == nullptr || each.partial_since < oldest->partial_since) oldest = &each;
    }
    WEFT_ASSERT(oldest != nullptr);
    warn(oldest->remote_host, "closed, the frames under way from all peers exceed " +
                                  std::to_string(options_.partial_bytes_max) +
                                  " bytes and its one is the oldest");
    drop(*oldest);
  }
}

void AcceptedConnections::drop(Connection& connection) {
  connections_.remove_if([&](const Connection& each) { return &each == &connection; });
}

void AcceptedConnections::warn(std::string_view remote_host, std::string_view what) {
  const LogLevel level = loop_.now() >= quiet_until_ ? LogLevel::kWarn : LogLevel::kDebug;
  if (level == LogLevel::kWarn) quiet_until_ = loop_.now() + kWarningPause;
  log_.log(level, "connection from ", remote_host, ": ", what);
}

}  // namespace weft
