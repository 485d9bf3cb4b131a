#include "broker/transit/transit.h"

#include "lib/protocol/wire_error.h"

namespace weft {

namespace {
constexpr std::size_t kScratchKeepMax = 256 * 1024;  // One large packet must not cost its memory for ever.
constexpr std::size_t kHeldBytesMax = 1 << 20;
constexpr std::size_t kHeldOverhead = 128;  // Of each held request besides its bytes.
}  // namespace

Transit::Transit(Config config, const EventLoop& loop, Transporter& transporter, const Serializer& serializer,
                 Handler& handler, Logger log)
    : config_(std::move(config)),
      loop_(loop),
      transporter_(transporter),
      serializer_(serializer),
      handler_(handler),
      log_(std::move(log)) {}

void Transit::start(Transporter::Completion done) {
  transporter_.start({.node_id = config_.node_id, .name_space = config_.name_space}, *this,
                     life_.guard([this, done = std::move(done)](Result<> result) mutable {
                       connected_ = result.ok();
                       done(std::move(result));
                     }));
}

void Transit::stop(Transporter::Completion done) {
  connected_ = false;
  transporter_.stop(life_.guard(std::move(done)));
}

void Transit::release_requests() {
  holding_ = false;
  held_bytes_ = 0;
  for (const Buffer& request : std::exchange(held_, {}))
    on_frame({.type = PacketType::kRequest, .payload = request.view(), .remote_host = {}});
}

void Transit::hold(const FrameView& request) {
  const std::size_t bytes = request.payload.size() + kHeldOverhead;
  if (held_bytes_ + bytes > kHeldBytesMax) return;
  held_bytes_ += bytes;
  held_.emplace_back().append(request.payload);
}

template <typename Packet>
Result<> Transit::encode(const Packet& packet) {
  if (!connected_) {
    return Error(
        ErrorClass::kBrokerDisconnected,
        "The broker's transporter is disconnected: the packet cannot be sent. Try again when it is back.");
  }
  Packet stamped = packet;
  stamped.sender = config_.node_id;
  scratch_.clear();
  return serializer_.encode(stamped, scratch_);
}

void Transit::trim_scratch() {
  if (scratch_.capacity() > kScratchKeepMax) scratch_ = Buffer();
}

Result<> Transit::send_request(std::string_view node, const RequestPacket& packet) {
  auto sent = encode(packet);
  if (sent) sent = transporter_.send(node, PacketType::kRequest, scratch_.view(), packet.id);
  trim_scratch();
  return sent;
}

Result<> Transit::send_balanced_request(const RequestPacket& packet) {
  auto sent = encode(packet);
  if (sent) sent = transporter_.publish_balanced_request(packet.action, scratch_.view());
  trim_scratch();
  return sent;
}

void Transit::send_response(std::string_view node, const ResponsePacket& packet) {
  auto sent = encode(packet);
  if (sent) sent = transporter_.send(node, PacketType::kResponse, scratch_.view());
  trim_scratch();
  if (sent || !connected_) return;

  log_.warn("The response to '", node, "' cannot be sent: ", sent.error().message());
  // Its content is the trouble, or its size: the bare error goes through.
  ResponsePacket failure;
  failure.id = packet.id;
  failure.success = false;
  failure.data = Payload(Value());
  failure.error = Payload(error_to_wire(sent.error(), config_.node_id, false));
  sent = encode(failure);
  if (sent) sent = transporter_.send(node, PacketType::kResponse, scratch_.view());
  if (!sent) handler_.on_transit_error(sent.error(), "failedSendResponsePacket");
}

Result<> Transit::send_event(std::string_view node, const EventPacket& packet) {
  auto sent = encode(packet);
  if (sent) sent = transporter_.send(node, PacketType::kEvent, scratch_.view());
  trim_scratch();
  return sent;
}

Result<> Transit::send_balanced_event(std::string_view group, const EventPacket& packet) {
  auto sent = encode(packet);
  if (sent) sent = transporter_.publish_balanced_event(group, packet.event, scratch_.view());
  trim_scratch();
  return sent;
}

Result<> Transit::forward_event(std::string_view node, const EventPacket& packet) {
  scratch_.clear();
  auto sent = serializer_.encode(packet, scratch_);
  if (sent) sent = transporter_.send(node, PacketType::kEvent, scratch_.view());
  trim_scratch();
  return sent;
}

Result<Buffer> Transit::encode_control(Value body) {
  if (!body.is_object()) body = Value::object();
  body.set("ver", kProtocolVersion);
  body.set("sender", config_.node_id);
  Buffer bytes;
  if (auto encoded = serializer_.encode(body, bytes); !encoded) return encoded.error();
  return bytes;
}

void Transit::probe(std::string_view node) {
  if (!connected_) return;
  // What a node of any kind drops without a word: a pong in its own name.
  Value pong{{"ver", kProtocolVersion}, {"sender", node}, {"id", "canary"}, {"time", 0}, {"arrived", 0}};
  Buffer bytes;
  if (serializer_.encode(pong, bytes)) transporter_.probe(node, bytes.view());
}

void Transit::set_greeting(Value hello) {
  if (auto bytes = encode_control(std::move(hello))) transporter_.set_greeting(bytes->view());
}

void Transit::learn_address(std::string_view node, const SocketAddress& address) {
  transporter_.learn_address(node, address);
}

void Transit::forget_node(std::string_view node) {
  transporter_.forget_node(node);
}

SocketAddress Transit::listen_address() const {
  return transporter_.listen_address();
}

Result<> Transit::send_control(PacketType type, std::string_view node, Value body) {
  if (!connected_) return {};  // All but requests, events and pings are silently skipped while away.
  auto bytes = encode_control(std::move(body));
  Result<> sent;
  if (!bytes) {
    sent = bytes.error();
  } else if (node.empty()) {
    sent = transporter_.broadcast(type, bytes->view());
    if (sent && type == PacketType::kDiscover) ++own_discovers_;
  } else {
    sent = transporter_.send(node, type, bytes->view());
  }
  if (!sent) {
    log_.debug("A ", to_string(type), " packet to '", node.empty() ? "all" : node,
               "' was not sent: ", sent.error().message());
  }
  return sent;
}

bool Transit::accepts(const FrameView& frame, std::string_view ver, std::string_view sender) {
  if (sender.size() > kNodeIdBytesMax) {
    const Error error(ErrorClass::kInvalidPacketData,
                      "Its sender's name has " + std::to_string(sender.size()) + " bytes, allowed are " +
                          std::to_string(kNodeIdBytesMax) + ".");
    drop(frame, error);
    if (frame.link != nullptr) frame.link->refuse(error);
    return false;
  }
  if (frame.link != nullptr && !frame.link->speaks_for(sender)) {
    const Error error(ErrorClass::kInvalidPacketData,
                      "It comes from '" + std::string(sender) + "' over the connection of another node.");
    drop(frame, error);
    frame.link->refuse(error);
    return false;
  }
  const bool has_version = frame.type < PacketType::kGossipHello;
  if (!has_version || ver == kProtocolVersion || config_.disable_version_check) return true;
  drop(frame, Error(ErrorClass::kProtocolVersionMismatch,
                    "Node '" + std::string(sender) + "' speaks protocol version '" +
                        std::string(ver.substr(0, 20)) + "', this node '5': its packets are dropped."));
  return false;
}

void Transit::drop(const FrameView& frame, const Error& error) {
  if (dropped_.pass(loop_.now())) {
    const std::uint64_t held = dropped_.take_held();
    log_.warn("A ", to_string(frame.type), " packet of ", frame.payload.size(),
              " bytes is dropped: ", error.message(),
              held == 0 ? "" : " (So were " + std::to_string(held) + " others since the last line.)");
  }
  handler_.on_transit_error(error, "failedProcessingPacket");
}

template <typename Packet>
std::optional<Packet> Transit::decode(const FrameView& frame) {
  std::optional<Packet> packet(std::in_place);
  if (auto decoded = serializer_.decode(frame.payload, *packet); !decoded) {
    drop(frame, decoded.error());
    packet.reset();
  } else if (packet->sender.empty()) {
    drop(frame, Error(ErrorClass::kInvalidPacketData, "It names no sender."));
    packet.reset();
  } else if (!accepts(frame, packet->ver, packet->sender)) {
    packet.reset();
  }
  return packet;
}

void Transit::receive_control(const FrameView& frame) {
  Value body;
  if (auto decoded = serializer_.decode(frame.payload, body); !decoded) return drop(frame, decoded.error());
  const Value& read = body;
  const std::string_view sender = read["sender"].str_or({});
  if (!body.is_object() || sender.empty()) {
    return drop(frame, Error(ErrorClass::kInvalidPacketData, "It names no sender."));
  }
  if (!accepts(frame, read["ver"].str_or({}), sender)) return;
  if (sender == config_.node_id) return receive_own(frame.type, body, frame.remote_host);
  handler_.on_control(frame.type, sender, body, frame.remote_host);
}

// Our own broadcasts come back. What another process says under our name is another matter.
void Transit::receive_own(PacketType type, const Value& body, std::string_view remote_host) {
  if (type == PacketType::kInfo && body["instanceID"].str_or(config_.instance_id) != config_.instance_id) {
    handler_.on_duplicate_node(body);
  } else if (type == PacketType::kDiscover) {
    if (own_discovers_ > 0) {
      --own_discovers_;
    } else {
      handler_.on_duplicate_joining();
    }
  } else if (type == PacketType::kGossipHello) {
    const std::int64_t port = body["port"].i64_or(0);
    if (port < 1 || port > 65535) return;
    handler_.on_duplicate_sighted({std::string(remote_host), static_cast<std::uint16_t>(port)});
  }
}

void Transit::on_frame(const FrameView& frame) {
  switch (frame.type) {
    case PacketType::kRequest:
      if (holding_) return hold(frame);
      if (const auto packet = decode<RequestPacket>(frame)) handler_.on_request(*packet);
      return;
    case PacketType::kResponse:
      if (const auto packet = decode<ResponsePacket>(frame)) handler_.on_response(*packet);
      return;
    case PacketType::kEvent:
      if (const auto packet = decode<EventPacket>(frame)) handler_.on_event(*packet, frame.is_balanced);
      return;
    default:
      return receive_control(frame);
  }
}

void Transit::on_reconnected() {
  connected_ = true;
  handler_.on_transporter_reconnected();
}

void Transit::on_disconnected(const Error& reason) {
  connected_ = false;
  handler_.on_transporter_disconnected(reason);
}

void Transit::on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) {
  if (node == config_.node_id) return handler_.on_duplicate_sighted(address);
  handler_.on_node_sighted(node, address, listed);
}
void Transit::on_node_lost(std::string_view node, const Error& reason) {
  handler_.on_node_lost(node, reason);
}
void Transit::on_undelivered(std::string_view node, std::string_view correlation) {
  handler_.on_undelivered(node, correlation);
}

}  // namespace weft
