// Every kind of packet in both forms, taken by a whole node: what it decodes, what it makes of it, what it
// answers. Each input meets a node of its own that knows one peer and waits for its answer to one call.

#include "tests/fuzz/fuzz.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "broker/broker.h"
#include "tests/support/manual_loop.h"

namespace fuzzed {

struct Order {
  std::int64_t id = 0;
  std::vector<std::string> items;
};
WEFT_FIELDS(Order, id, items)

}  // namespace fuzzed

namespace weft::fuzz {

namespace {

using namespace std::chrono_literals;

// In inputs it stands for the id of the request that waits.
constexpr std::string_view kRequestId = "00000000-0000-0000-0000-000000000000";

// Swallows what is sent.
class Carrier final : public Transporter {
 public:
  Carrier(EventLoop& loop, const Serializer& serializer, bool is_bus)
      : loop_(loop), serializer_(serializer), is_bus_(is_bus) {}

  [[nodiscard]] Traits traits() const override {
    return {.name = "Fuzz", .is_bus = is_bus_, .can_balance = false, .payload_bytes_max = 1 << 20};
  }
  void start(const Identity&, Listener& given, Completion done) override {
    loop_.post([this, &given, done = std::move(done)]() mutable {
      listener = &given;
      done({});
    });
  }
  void stop(Completion done) override {
    listener = nullptr;
    loop_.post([done = std::move(done)]() mutable { done({}); });
  }
  [[nodiscard]] Result<> send(std::string_view, PacketType type, BytesView payload,
                              std::string_view) override {
    if (type == PacketType::kRequest) {
      const Padded message(payload);
      RequestPacket packet;
      if (serializer_.decode(message.view(), packet).ok()) request_id = packet.id;
    }
    return {};
  }
  [[nodiscard]] Result<> broadcast(PacketType, BytesView) override { return {}; }
  [[nodiscard]] SocketAddress listen_address() const override {
    return {"10.0.0.1", static_cast<std::uint16_t>(is_bus_ ? 0 : 4000)};
  }

  Listener* listener = nullptr;
  std::string request_id;

 private:
  EventLoop& loop_;
  const Serializer& serializer_;
  const bool is_bus_;
};

// A machine of which nothing is asked: the carrier needs no sockets.
class NoNetwork final : public Network {
 public:
  std::unique_ptr<Stream> connect(const SocketAddress&, const StreamOptions&) override { return nullptr; }
  Result<std::unique_ptr<StreamListener>> listen(const SocketAddress&, const StreamOptions&,
                                                 AcceptCallback) override {
    return Error(ErrorClass::kBase, "no sockets");
  }
  Result<std::unique_ptr<DatagramSocket>> open_datagram(const DatagramOptions&, DatagramCallback) override {
    return Error(ErrorClass::kBase, "no sockets");
  }
  [[nodiscard]] std::vector<InterfaceAddress> interfaces() const override { return {}; }
  [[nodiscard]] std::string hostname() const override { return "self"; }
};

class NoSystem final : public SystemProbe {
 public:
  [[nodiscard]] int cpu_percent() override { return 10; }
  [[nodiscard]] Value health() override { return Value::object(); }
  [[nodiscard]] std::int64_t process_id() const override { return 1; }
};

// Formatted like the real ones, and gone.
class NoLog final : public LogSink {
 public:
  void write(const LogRecord&) override {}
};

class Node {
 public:
  Node(const Serializer& serializer, bool is_bus) : serializer_(serializer), is_bus_(is_bus) {
    BrokerOptions options;
    options.node_id = "self";
    options.serializer = serializer.name();
    options.log_level = LogLevel::kWarn;
    options.internal_services = false;
    options.registry.nodes_max = 16;
    options.registry.services_per_node_max = 8;
    options.registry.actions_per_service_max = 8;
    options.registry.stop_delay = {};
    options.tracking.shutdown_timeout = 10ms;
    auto carrier = std::make_unique<Carrier>(loop_, serializer, is_bus);
    carrier_ = carrier.get();
    broker_ = std::make_unique<Broker>(Runtime{loop_, network_, random_, system_, std::make_shared<NoLog>()},
                                       std::move(options), std::move(carrier));
    auto service = std::make_shared<Service>("shop");
    service->action("buy", [](Context&, const fuzzed::Order& order) { return order.id; });
    service->action("echo", [](Context& c) { return c.params.value(); });
    service->action("slow", [](Context& c) -> Task<Value> {
      co_await c.broker().sleep(20ms);
      co_return c.params.value();
    });
    service->event("order.**", [](Context& c) { (void)c.params.value(); });
    broker_->add_service(std::move(service));
    run(broker_->start(), 1s);
    introduce_peer();
    call_ = std::make_unique<Call<Value>>(broker_->call("peer.work", {}, {.timeout = 1s}));
  }
  ~Node() {
    call_.reset();
    run(broker_->stop(), 10s);
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void receive(PacketType type, BytesView payload) {
    std::string bytes(payload);
    const std::size_t id = bytes.find(kRequestId);
    if (id != std::string::npos && carrier_->request_id.size() == kRequestId.size())
      bytes.replace(id, kRequestId.size(), carrier_->request_id);
    const Padded message(bytes);
    if (carrier_->listener != nullptr)
      carrier_->listener->on_frame({type, message.view(), is_bus_ ? "" : "10.0.0.2"});
  }
  void run_for(Duration span) { loop_.advance(span); }
  // What the packets left behind is within the limits, and can be shown.
  void check() {
    const Value nodes = broker_->node_list(true, false);
    WEFT_ASSERT(nodes.size() <= broker_->options().registry.nodes_max);
    (void)to_json(nodes);
    broker_->emit("order.made", {{"id", 1}});
    broker_->broadcast("peer.event");
  }

 private:
  void run(Task<void> task, Duration limit) {
    bool done = false;
    task.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &done);
    for (const Instant end = loop_.now() + limit; !done && loop_.now() < end;) loop_.advance(5ms);
    WEFT_ASSERT(done);
    task.take();
  }

  void introduce_peer() {
    const Value service{{"name", "peer"},
                        {"fullName", "peer"},
                        {"actions", Value{{"peer.work", Value{{"name", "peer.work"}}}}},
                        {"events", Value{{"peer.event", Value{{"name", "peer.event"}}}}}};
    Value info{{"ver", "5"},        {"sender", "peer"},          {"services", arr(service)},
               {"seq", 3},          {"ipList", arr("10.0.0.2")}, {"instanceID", "i-1"},
               {"hostname", "peer"}};
    if (is_bus_) return receive_tree(PacketType::kInfo, info);
    receive_tree(PacketType::kGossipHello,
                 Value{{"ver", "5"}, {"sender", "peer"}, {"host", "10.0.0.2"}, {"port", 4001}});
    info.set("port", 4001);
    receive_tree(PacketType::kGossipResponse,
                 Value{{"ver", "5"}, {"sender", "peer"}, {"online", Value{{"peer", arr(info, 1, 10)}}}});
  }
  void receive_tree(PacketType type, const Value& tree) {
    Buffer bytes;
    WEFT_ASSERT(serializer_.encode(tree, bytes).ok());
    receive(type, bytes.view());
  }

  const Serializer& serializer_;
  const bool is_bus_;
  test::ManualLoop loop_;
  NoNetwork network_;
  SeededRandom random_{1};
  NoSystem system_;
  Carrier* carrier_ = nullptr;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<Call<Value>> call_;
};

[[nodiscard]] constexpr bool is_gossip(PacketType type) {
  return type >= PacketType::kGossipHello;
}

template <auto& serializer, PacketType type>
void packet(BytesView input) {
  Node node(serializer(), !is_gossip(type));
  node.receive(type, input);
  node.run_for(50ms);
  node.check();
}

// Packets one after another, each behind a byte for its type and two for its length; of the types beyond the
// last, time goes by.
template <bool is_bus>
void session(BytesView input) {
  Node node(json(), is_bus);
  for (int count = 0; input.size() >= 3 && count < 64; ++count) {
    const auto type = static_cast<std::uint8_t>(input[0]);
    const std::size_t length =
        static_cast<std::uint8_t>(input[1]) * 256U + static_cast<std::uint8_t>(input[2]);
    input.remove_prefix(3);
    if (type >= kPacketTypeCount) {
      node.run_for(std::chrono::milliseconds(length));
      continue;
    }
    node.receive(static_cast<PacketType>(type), input.substr(0, length));
    input.remove_prefix(std::min(length, input.size()));
  }
  node.run_for(50ms);
  node.check();
}

template <auto& serializer, PacketType type>
constexpr Target row(std::string_view name) {
  return {name, packet<serializer, type>};
}

constexpr Target kTargets[] = {
    row<json, PacketType::kEvent>("node.json.EVENT"),
    row<json, PacketType::kRequest>("node.json.REQ"),
    row<json, PacketType::kResponse>("node.json.RES"),
    row<json, PacketType::kDiscover>("node.json.DISCOVER"),
    row<json, PacketType::kInfo>("node.json.INFO"),
    row<json, PacketType::kDisconnect>("node.json.DISCONNECT"),
    row<json, PacketType::kHeartbeat>("node.json.HEARTBEAT"),
    row<json, PacketType::kPing>("node.json.PING"),
    row<json, PacketType::kPong>("node.json.PONG"),
    row<json, PacketType::kGossipHello>("node.json.GOSSIP_HELLO"),
    row<json, PacketType::kGossipRequest>("node.json.GOSSIP_REQ"),
    row<json, PacketType::kGossipResponse>("node.json.GOSSIP_RES"),
    row<msgpack, PacketType::kEvent>("node.msgpack.EVENT"),
    row<msgpack, PacketType::kRequest>("node.msgpack.REQ"),
    row<msgpack, PacketType::kResponse>("node.msgpack.RES"),
    row<msgpack, PacketType::kDiscover>("node.msgpack.DISCOVER"),
    row<msgpack, PacketType::kInfo>("node.msgpack.INFO"),
    row<msgpack, PacketType::kDisconnect>("node.msgpack.DISCONNECT"),
    row<msgpack, PacketType::kHeartbeat>("node.msgpack.HEARTBEAT"),
    row<msgpack, PacketType::kPing>("node.msgpack.PING"),
    row<msgpack, PacketType::kPong>("node.msgpack.PONG"),
    row<msgpack, PacketType::kGossipHello>("node.msgpack.GOSSIP_HELLO"),
    row<msgpack, PacketType::kGossipRequest>("node.msgpack.GOSSIP_REQ"),
    row<msgpack, PacketType::kGossipResponse>("node.msgpack.GOSSIP_RES"),
    {"session.bus", session<true>},
    {"session.gossip", session<false>},
};

}  // namespace

std::span<const Target> packet_targets() {
  return kTargets;
}

}  // namespace weft::fuzz
