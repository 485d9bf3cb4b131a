#include "transporters/tcp/tcp_transporter.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lib/base/assert.h"
#include "transporters/tcp/frame.h"

namespace weft {

namespace {

using namespace std::chrono_literals;

constexpr Duration kStopMax = 1s;

PeerPoolOptions pool_options(const TcpOptions& options) {
  return {.connections_max = options.max_connections,
          .queue_total_bytes_max = options.queue_total_bytes_max,
          .stream = {.queue_bytes_max = options.queue_bytes_max,
                     .connect_timeout = options.connect_timeout,
                     .user_timeout = options.user_timeout,
                     .keepalive_idle = options.keepalive_idle}};
}

// Whether a connection that carries it is in use. Requests of gossip go to everybody by turns; with responses
// weft nodes keep the links that they watch one another by.
bool is_use(PacketType type) {
  return type != PacketType::kGossipHello && type != PacketType::kGossipRequest;
}

}  // namespace

TcpTransporter::TcpTransporter(EventLoop& loop, Network& network, Logger log, TcpOptions options)
    : loop_(loop),
      network_(network),
      log_(std::move(log)),
      options_(std::move(options)),
      accepted_(
          loop, log_,
          {.connections_max = options_.max_accepted,
           .frame_bytes_max = options_.max_packet_size,
           .partial_bytes_max = std::max(options_.partial_bytes_max, options_.max_packet_size),
           .frame_timeout = options_.frame_timeout},
          [this](const FrameView& frame) {
            if (listener_ != nullptr) listener_->on_frame(frame);
          },
          [this](std::string_view node, const Error& reason) {
            if (listener_ != nullptr) listener_->on_node_lost(node, reason);
          }),
      pool_(loop, network, *this, pool_options(options_)) {}

TcpTransporter::~TcpTransporter() = default;

Transporter::Traits TcpTransporter::traits() const {
  return {
      .name = "TCP", .is_bus = false, .can_balance = false, .payload_bytes_max = payload_bytes_max(options_)};
}

void TcpTransporter::start(const Identity& identity, Listener& listener, Completion done) {
  WEFT_ASSERT(loop_.is_current() && state_ == State::kIdle);
  started_ = std::move(done);
  const Result<> opened = open(identity);
  if (!opened.ok()) {
    acceptor_.reset();
    timer_.set(loop_, loop_.now(),
               [this, error = opened.error()] { std::exchange(started_, nullptr)(error); });
    return;
  }
  state_ = State::kRunning;
  // Nobody hears of us before we are ready to hear of them.
  timer_.set(loop_, loop_.now(), [this, identity, &listener] {
    listener_ = &listener;
    start_discovery(identity);
    std::exchange(started_, nullptr)({});
    if (state_ == State::kRunning) timer_.set(loop_, loop_.now(), [this] { tell_static_peers(); });
  });
}

Result<> TcpTransporter::open(const Identity& identity) {
  if (const Result<> valid = validate(options_); !valid.ok()) return valid;
  const auto is_bad = [](std::string_view name) { return name.find('|') != std::string_view::npos; };
  if (options_.udp_discovery && (is_bad(identity.node_id) || is_bad(identity.name_space))) {
    return Error::broker_options("TCP transporter: nodeID '" + identity.node_id + "' or namespace '" +
                                 identity.name_space + "' has a '|', which UDP discovery cannot carry.");
  }
  auto peers = read_static_peers(options_.urls, identity.node_id,
                                 [](const std::string& path) { return read_peer_file(path); });
  if (!peers.ok()) return peers.error();
  static_peers_ = std::move(*peers);
  for (const std::string& warning : static_peers_.warnings) log_.warn(warning);

  const std::uint16_t port = options_.port != 0 ? options_.port : static_peers_.own_port.value_or(0);
  auto acceptor =
      network_.listen({options_.host, port}, pool_options(options_).stream,
                      [this](std::unique_ptr<Stream> stream) { accepted_.add(std::move(stream)); });
  if (!acceptor.ok()) return acceptor.error();
  acceptor_ = std::move(*acceptor);
  listen_address_ = {advertised_host(), acceptor_->local_address().port};
  return {};
}

void TcpTransporter::start_discovery(const Identity& identity) {
  log_.info("listening on port ", listen_address_.port);
  if (!options_.udp_discovery) return;
  announcer_ = std::make_unique<UdpAnnouncer>(loop_, network_, log_, options_, identity.name_space,
                                              identity.node_id, listen_address_.port,
                                              [this](std::string_view node, const SocketAddress& address) {
                                                if (listener_ != nullptr)
                                                  listener_->on_node_sighted(node, address, false);
                                              });
  if (!announcer_->start()) {
    log_.warn("UDP discovery does not work: no socket for port ", options_.udp_port, " could be opened.");
  }
}

void TcpTransporter::tell_static_peers() {
  const std::vector<StaticPeers::Peer> peers = std::exchange(static_peers_.peers, {});
  for (const StaticPeers::Peer& peer : peers) {
    if (listener_ != nullptr) listener_->on_node_sighted(peer.node, peer.address, true);
  }
}

void TcpTransporter::stop(Completion done) {
  WEFT_ASSERT(loop_.is_current() && state_ != State::kStopping);
  const bool was_running = state_ == State::kRunning;
  state_ = State::kStopping;
  listener_ = nullptr;
  stopped_ = std::move(done);
  acceptor_.reset();
  // The announcer may be the one that calls us.
  timer_.set(loop_, loop_.now() + (was_running ? kStopMax : Duration::zero()), [this] { finish_stop(); });
  pool_.close_after_flush([this] { finish_stop(); });
}

void TcpTransporter::finish_stop() {
  timer_.cancel();
  announcer_.reset();
  accepted_.close_all();
  pool_.close();
  listen_address_ = {};
  state_ = State::kStopped;
  Completion started = std::exchange(started_, nullptr);
  Completion done = std::exchange(stopped_, nullptr);
  if (started)
    started(Error(ErrorClass::kBrokerDisconnected, "The TCP transporter was stopped while it started."));
  done({});
}

Result<> TcpTransporter::send(std::string_view node, PacketType type, BytesView payload, std::string_view) {
  WEFT_ASSERT(loop_.is_current());
  if (state_ != State::kRunning) {
    return Error(ErrorClass::kBrokerDisconnected, "The TCP transporter is not running.");
  }
  if (!frame_number(type)) {
    return Error(ErrorClass::kBase, std::string(to_string(type)) + " packets do not travel over TCP.",
                 "NOT_SUPPORTED");
  }
  if (const std::size_t limit = payload_bytes_max(options_); payload.size() > limit) {
    return Error(ErrorClass::kBase,
                 "packet of " + std::to_string(payload.size()) + " bytes exceeds the " +
                     std::to_string(limit) + " bytes that one TCP frame may carry",
                 "PACKET_TOO_LARGE", Value{{"nodeID", node}, {"size", payload.size()}, {"limit", limit}});
  }
  const FrameHeader header = make_frame_header(type, payload.size());
  return pool_.send(node, {header.data(), header.size()}, payload, is_use(type));
}

Result<> TcpTransporter::broadcast(PacketType type, BytesView) {
  return Error(ErrorClass::kBase,
               "The TCP transporter has no broadcast for " + std::string(to_string(type)) +
                   ": frames have one target.",
               "NOT_SUPPORTED");
}

void TcpTransporter::learn_address(std::string_view node, const SocketAddress& address) {
  WEFT_ASSERT(loop_.is_current());
  pool_.learn_address(node, address);
}

void TcpTransporter::forget_node(std::string_view node) {
  WEFT_ASSERT(loop_.is_current());
  pool_.forget_node(node);
}

void TcpTransporter::set_greeting(BytesView payload) {
  const FrameHeader header = make_frame_header(PacketType::kGossipHello, payload.size());
  Buffer frame;
  frame.append({header.data(), header.size()});
  frame.append(payload);
  pool_.set_greeting(frame.view());
}

SocketAddress TcpTransporter::listen_address() const {
  return listen_address_;
}

std::string TcpTransporter::advertised_host() const {
  const bool is_bound = !options_.host.empty() && options_.host != "0.0.0.0" && options_.host != "::";
  if (is_bound) return options_.host;
  if (options_.use_hostname) {
    if (std::string name = network_.hostname(); !name.empty()) return name;
  }
  std::string loopback = "127.0.0.1";
  for (const InterfaceAddress& each : network_.interfaces()) {
    if (each.is_ipv4 && !each.is_loopback) return each.address;
  }
  return loopback;
}

void TcpTransporter::on_peer_lost(std::string_view node, const Error& reason) {
  log_.debug("the connection to ", node, " ended: ", reason.message());
  if (listener_ != nullptr) listener_->on_node_lost(node, reason);
}

}  // namespace weft
