#include "transporters/tcp/accepted_connections.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

#include "transporters/tcp/frame.h"

namespace weft {

namespace {
// An IPv4 peer of a socket that takes both looks like "::ffff:10.0.0.1".
std::string plain_host(std::string host) {
  constexpr std::string_view kMapped = "::ffff:";
  if (host.starts_with(kMapped) && host.find('.') != std::string::npos) host.erase(0, kMapped.size());
  return host;
}
}  // namespace

struct AcceptedConnections::Connection final : Stream::Handler, FrameLink {
  Connection(AcceptedConnections& owner, std::unique_ptr<Stream> accepted)
      : set(owner),
        stream(std::move(accepted)),
        remote_host(plain_host(stream->remote_address().host)),
        decoder(owner.options_.frame_bytes_max),
        waits_since(owner.loop_.now()) {
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
    bool had_frame = false;
    gone = &is_gone;
    const Result<> fed = decoder.feed(bytes, [&](PacketType type, BytesView payload) {
      had_frame = true;
      has_spoken = true;
      set.on_frame_({.type = type, .payload = payload, .remote_host = remote_host, .link = this});
      return !is_gone && !refused;
    });
    if (is_gone) return;
    gone = nullptr;
    if (!fed.ok()) set.warn(remote_host, fed.error().message());
    if (!fed.ok() || refused) return set.drop(*this);
    set.note_partial(*this, had_frame);
  }
  void on_closed(const Error& reason) override {
    set.log_.debug("the connection from ", remote_host, " ended: ", reason.message());
    AcceptedConnections& owner = set;
    const std::string speaker = reason.type() == "EOF" ? std::string() : std::move(node);
    const Error kept = reason;
    owner.drop(*this);
    if (!speaker.empty()) owner.on_broken_(speaker, kept);
  }
  bool speaks_for(std::string_view name) override {
    if (node.empty()) node = name;
    return node == name;
  }
  void refuse(const Error& why) override {
    refused = true;
    set.warn(remote_host, why.message());
  }
  // Whether it owes the rest of a frame, or its first one.
  [[nodiscard]] bool waits() const { return !has_spoken || partial_bytes > 0; }

  AcceptedConnections& set;
  std::unique_ptr<Stream> stream;
  const std::string remote_host;
  FrameDecoder decoder;
  std::string node;  // Who speaks; empty before the first packet.
  std::size_t partial_bytes = 0;
  Instant waits_since;
  bool has_spoken = false;
  bool refused = false;
  bool* gone = nullptr;  // Set while frames are handed on, which may end in our destruction.
};

AcceptedConnections::AcceptedConnections(EventLoop& loop, Logger log, AcceptedOptions options,
                                         FrameCallback on_frame, BrokenCallback on_broken)
    : loop_(loop),
      log_(std::move(log)),
      options_(options),
      on_frame_(std::move(on_frame)),
      on_broken_(std::move(on_broken)) {}
AcceptedConnections::~AcceptedConnections() = default;

void AcceptedConnections::add(std::unique_ptr<Stream> stream) {
  if (connections_.size() >= options_.connections_max && !make_room()) {
    warn(stream->remote_address().host, "refused, there are too many connections");
    return;
  }
  connections_.emplace_back(*this, std::move(stream));
  if (!timer_.active()) check_times();
}

void AcceptedConnections::close_all() {
  timer_.cancel();
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

void AcceptedConnections::drop(Connection& connection) {
  connections_.remove_if([&](const Connection& each) { return &each == &connection; });
}

void AcceptedConnections::note_partial(Connection& connection, bool had_frame) {
  const std::size_t held = connection.decoder.held_bytes();
  if (had_frame || connection.partial_bytes == 0) connection.waits_since = loop_.now();
  partial_bytes_ += held - connection.partial_bytes;
  connection.partial_bytes = held;
  if (held > 0 && !timer_.active()) check_times();
  while (partial_bytes_ > options_.partial_bytes_max) {
    Connection* slowest = nullptr;
    for (Connection& each : connections_) {
      if (each.partial_bytes == 0) continue;
      if (slowest == nullptr || each.waits_since < slowest->waits_since) slowest = &each;
    }
    warn(slowest->remote_host, "too many frames are incomplete, and this one was begun first");
    drop(*slowest);
  }
}

void AcceptedConnections::check_times() {
  if (options_.frame_timeout <= Duration::zero()) return;
  Instant first = kNever;
  for (auto at = connections_.begin(); at != connections_.end();) {
    const Connection& each = *at++;
    if (!each.waits()) continue;
    if (loop_.now() - each.waits_since >= options_.frame_timeout) {
      warn(each.remote_host, each.has_spoken ? "a frame was begun and never ended" : "it never sent a frame");
      connections_.erase(std::prev(at));
      continue;
    }
    first = std::min(first, each.waits_since);
  }
  // Not for each of them to the point: a second late is early enough.
  if (first != kNever) {
    const Instant due = std::max(first + options_.frame_timeout, loop_.now() + std::chrono::seconds(1));
    timer_.set(loop_, due, [this] { check_times(); });
  }
}

void AcceptedConnections::warn(std::string_view remote_host, std::string_view what) {
  const bool is_due = warnings_.pass(loop_.now());
  const std::uint64_t held = is_due ? warnings_.take_held() : 0;
  log_.log(is_due ? LogLevel::kWarn : LogLevel::kDebug, "connection from ", remote_host, ": ", what,
           held == 0 ? "" : " (and " + std::to_string(held) + " others since the last line)");
}

}  // namespace weft
