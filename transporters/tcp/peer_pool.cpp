#include "transporters/tcp/peer_pool.h"

#include <algorithm>
#include <utility>

#include "lib/base/assert.h"

namespace weft {

namespace {

using namespace std::chrono_literals;

// A connection that stood for so long was a good one: its end is no reason to wait before the next.
constexpr Duration kGoodAfter = 1s;
constexpr Duration kFirstPause = 50ms;
constexpr Duration kPauseMax = 1s;

// A queue of this size is no reason to look at all the others.
constexpr std::size_t kSmallQueueBytes = 1UL << 20;
// Connections on their way out that have not closed yet: every one is a socket, and made-up nodes must not
// use them all up. Beyond the first number only for traffic.
constexpr std::size_t kRetiredMax = 32;
constexpr std::size_t kRetiredForTrafficMax = 256;

// After the first failure the next dial may follow at once: the peer may just have restarted.
Duration pause_after(int failures) {
  if (failures < 2) return Duration::zero();
  Duration pause = kFirstPause;
  for (int i = 2; i < failures && pause < kPauseMax; ++i) pause *= 2;
  return std::min(pause, kPauseMax);
}

Error unreachable(std::string_view node, std::string_view why) {
  return Error(ErrorClass::kServiceNotAvailable,
               "Node '" + std::string(node) + "' cannot be reached: " + std::string(why), {},
               Value{{"nodeID", node}});
}

}  // namespace

struct PeerPool::Connection final : Stream::Handler {
  Connection(PeerPool& owner, std::string of_node, std::unique_ptr<Stream> made, Instant now)
      : pool(owner), node(std::move(of_node)), stream(std::move(made)), dialled_at(now) {
    stream->set_handler(*this);
  }

  // A node writes on connections it opened and reads from those it accepted; whatever comes here is not for
  // us.
  void on_data(BytesView) override {}
  void on_closed(const Error& reason) override {
    const Error kept = reason;
    pool.closed(*this, kept);
  }
  [[nodiscard]] bool stood() const { return !stream->remote_address().host.empty(); }

  PeerPool& pool;
  const std::string node;
  std::unique_ptr<Stream> stream;
  const Instant dialled_at;
  bool retired = false;
};

PeerPool::PeerPool(EventLoop& loop, Network& network, Owner& owner, PeerPoolOptions options)
    : loop_(loop), network_(network), owner_(owner), options_(options) {}
PeerPool::~PeerPool() = default;

void PeerPool::set_greeting(BytesView frame) {
  WEFT_ASSERT(!frame.empty());
  const bool is_first = greeting_.empty();
  greeting_.clear();
  greeting_.append(frame);
  if (!is_first) return;
  for (auto& [node, peer] : peers_) {
    if (!peer.waiting.empty()) dial(peer);
  }
}

void PeerPool::learn_address(std::string_view node, const SocketAddress& address) {
  if (!address.valid() || closing_) return;
  Peer* peer = find(node);
  if (peer == nullptr) {
    Peer& added = peers_[std::string(node)];
    added.node = node;
    added.address = address;
    return;
  }
  const bool is_known = peer->address == address;
  if (is_known && peer->connection != nullptr) return;
  const bool same_port = peer->address.port == address.port;
  peer->address = address;
  peer->failures = 0;
  peer->dial_after = {};
  // One node is known by several names and addresses. As long as its connection stands, another of them is no
  // news; another port is another process.
  if (peer->connection != nullptr && !(same_port && peer->connection->stood())) retire(*peer);
}

void PeerPool::forget_node(std::string_view node) {
  const auto found = peers_.find(node);
  if (found == peers_.end()) return;
  if (found->second.connection != nullptr) --connection_count_;
  peers_.erase(found);
}

Result<> PeerPool::send(std::string_view node, BytesView header, BytesView payload, bool is_traffic) {
  WEFT_ASSERT(loop_.is_current());
  Peer* peer = find(node);
  if (peer == nullptr) return unreachable(node, "its address is not known");
  if (is_traffic) peer->last_use = ++uses_;
  if (peer->connection == nullptr) {
    if (loop_.now() < peer->dial_after) {
      return unreachable(node, peer->address.to_string() + " refused just now");
    }
    if (greeting_.empty()) return wait_for_greeting(*peer, header, payload);
    if (retired_.size() >= (is_traffic ? kRetiredForTrafficMax : kRetiredMax))
      return unreachable(node, "too many connections are being closed");
    dial(*peer);
  }
  Stream& stream = *peer->connection->stream;
  if (stream.queued_bytes() > kSmallQueueBytes && is_overfull())
    return queue_full(*peer, stream.queued_bytes());
  if (!stream.write(header, payload)) return queue_full(*peer, stream.queued_bytes());
  return {};
}

void PeerPool::close_after_flush(UniqueFunction<void()> done) {
  closing_ = true;
  all_closed_ = std::move(done);
  for (auto& [node, peer] : peers_) {
    if (peer.connection != nullptr) retire(peer);
  }
  peers_.clear();
  check_all_closed();
}

void PeerPool::close() {
  closing_ = true;
  all_closed_ = nullptr;
  all_closed_timer_.cancel();
  connection_count_ = 0;
  peers_.clear();
  retired_.clear();
}

PeerPool::Peer* PeerPool::find(std::string_view node) {
  const auto found = peers_.find(node);
  return found == peers_.end() ? nullptr : &found->second;
}

Result<> PeerPool::wait_for_greeting(Peer& peer, BytesView header, BytesView payload) {
  if (peer.waiting.size() + header.size() + payload.size() > options_.stream.queue_bytes_max) {
    return queue_full(peer, peer.waiting.size());
  }
  peer.waiting.append(header);
  peer.waiting.append(payload);
  return {};
}

bool PeerPool::is_overfull() const {
  std::size_t bytes = 0;
  for (const auto& [node, peer] : peers_) {
    if (peer.connection != nullptr) bytes += peer.connection->stream->queued_bytes();
  }
  for (const auto& connection : retired_) bytes += connection->stream->queued_bytes();
  return bytes > options_.queue_total_bytes_max;
}

Error PeerPool::queue_full(const Peer& peer, std::size_t queued_bytes) const {
  return Error(
      ErrorClass::kQueueIsFull,
      "The connection to node '" + peer.node + "' takes no more: " + std::to_string(queued_bytes) +
          " bytes are waiting.",
      {}, Value{{"nodeID", peer.node}, {"size", queued_bytes}, {"limit", options_.stream.queue_bytes_max}});
}

void PeerPool::dial(Peer& peer) {
  make_room(peer);
  if (peer.last_use == 0) peer.last_use = ++uses_;
  peer.connection = std::make_unique<Connection>(
      *this, peer.node, network_.connect(peer.address, options_.stream), loop_.now());
  ++connection_count_;
  // Both fit: an empty queue takes at least one frame, and what waited was held to the queue's limit. A queue
  // that the greeting fills refuses the rest, as it would refuse any other send.
  if (!peer.connection->stream->write(greeting_.view(), peer.waiting.view())) {
    static_cast<void>(peer.connection->stream->write(greeting_.view(), {}));
  }
  peer.waiting = Buffer();
}

void PeerPool::make_room(const Peer& newcomer) {
  if (options_.connections_max == 0) return;
  while (connection_count_ >= options_.connections_max) {
    Peer* idlest = nullptr;
    for (auto& [node, peer] : peers_) {
      if (&peer == &newcomer || peer.connection == nullptr) continue;
      if (idlest == nullptr || peer.last_use < idlest->last_use) idlest = &peer;
    }
    if (idlest == nullptr) return;
    retire(*idlest);
  }
}

// The connection writes out what it has and goes, without that being a sign of anything.
void PeerPool::retire(Peer& peer) {
  --connection_count_;
  peer.connection->retired = true;
  peer.connection->stream->close_after_flush();
  retired_.push_back(std::move(peer.connection));
}

void PeerPool::closed(Connection& connection, const Error& reason) {
  if (connection.retired) return retired_closed(connection, reason);
  Peer* peer = find(connection.node);
  WEFT_ASSERT(peer != nullptr && peer->connection.get() == &connection);
  const bool was_good = connection.stood() && loop_.now() - connection.dialled_at >= kGoodAfter;
  peer->failures = was_good ? 0 : peer->failures + 1;
  peer->dial_after = loop_.now() + pause_after(peer->failures);
  const std::unique_ptr<Connection> gone = std::move(peer->connection);
  --connection_count_;
  gone->stream.reset();
  owner_.on_peer_lost(gone->node, reason);
}

void PeerPool::retired_closed(Connection& connection, const Error& reason) {
  const auto found = std::find_if(retired_.begin(), retired_.end(),
                                  [&](const auto& each) { return each.get() == &connection; });
  WEFT_ASSERT(found != retired_.end());
  const std::unique_ptr<Connection> gone = std::move(*found);
  retired_.erase(found);
  // What was queued on a connection that never stood is lost, and whoever waits for an answer has to know.
  const bool is_loss = !gone->stood() && !closing_;
  gone->stream.reset();
  if (is_loss) return owner_.on_peer_lost(gone->node, reason);
  check_all_closed();
}

void PeerPool::check_all_closed() {
  if (!closing_ || !all_closed_ || !retired_.empty()) return;
  all_closed_timer_.set(loop_, loop_.now(), std::exchange(all_closed_, nullptr));
}

}  // namespace weft
