#include "broker/gossip/gossip.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "lib/protocol/serializer.h"

using namespace weft;
using namespace std::chrono_literals;

namespace {

constexpr auto kHello = PacketType::kGossipHello;
constexpr auto kRequest = PacketType::kGossipRequest;
constexpr auto kResponse = PacketType::kGossipResponse;

using Ids = std::vector<std::string>;

Value info(std::uint64_t seq, Value services = arr(Value{{"name", "svc"}}), std::string_view instance = "one",
           std::uint16_t port = 6001) {
  return {{"ipList", arr("10.0.0.9")},
          {"hostname", "host-p"},
          {"instanceID", instance},
          {"port", port},
          {"seq", seq},
          {"services", std::move(services)}};
}

std::string_view service_of(const Node& node) {
  return node.services[0]["name"].str_or({});
}

// The node W with seq 3 and what it said last.
struct Setup {
  explicit Setup(const GossipOptions& options = {}) : gossip(nodes, options, random) {
    Node& self = nodes.self();
    self.seq = 3;
    self.hostname = "host-w";
    self.ip_list = {"10.0.0.1"};
    self.port = 6000;
    self.services = arr(Value{{"name", "mine"}});
  }

  void receive(PacketType type, std::string_view sender, const Value& body) {
    now += 1s;  // Nothing is held back by contact_gap.
    gossip.receive(type, sender, body, "10.1.1.1", now);
    output = gossip.take_output();
  }
  // Makes P known and online by its own word.
  void join(std::string_view id = "P", std::uint64_t seq = 5) {
    receive(kHello, id, {{"host", "host-p"}, {"port", 6001}});
    receive(kResponse, id, {{"online", {{id, arr(info(seq), 1, 20)}}}});
    REQUIRE(nodes.find(id)->available);
  }
  void lose(std::string_view id) {
    now += 1s;
    gossip.node_lost(id, true, now);
    output = gossip.take_output();
  }
  void tick(Duration span) {
    now += span;
    gossip.tick(now);
    output = gossip.take_output();
  }

  template <typename T>
  [[nodiscard]] std::vector<T> outputs() const {
    std::vector<T> found;
    for (const Gossip::Output& one : output) {
      if (const T* it = std::get_if<T>(&one)) found.push_back(*it);
    }
    return found;
  }
  // The last packet of `type` to `to`, or null.
  [[nodiscard]] const Value sent(PacketType type, std::string_view to) const {
    Value body;
    for (const auto& send : outputs<Gossip::Send>()) {
      if (send.type == type && std::find(send.nodes.begin(), send.nodes.end(), to) != send.nodes.end()) {
        body = send.body;
      }
    }
    return body;
  }
  [[nodiscard]] std::string learned(std::string_view id) const {
    std::string address;
    for (const auto& learn : outputs<Gossip::LearnAddress>()) {
      if (learn.node == id) address = learn.address.to_string();
    }
    return address;
  }

  NodeCatalog nodes{"W", "instance of W"};
  SeededRandom random{1};
  Gossip gossip;
  Instant now{1h};
  std::vector<Gossip::Output> output;
};

}  // namespace

TEST_SUITE("gossip") {
  TEST_CASE("a rumour of our own death is refuted in the same exchange, and the number stays raised") {
    Setup w;
    w.join();
    w.receive(kRequest, "P", {{"online", {{"P", arr(5, 1, 20)}}}, {"offline", {{"W", 100}}}});
    const Value answer = w.sent(kResponse, "P");
    CHECK(answer["online"]["W"][0]["seq"] == Value(101));
    CHECK(answer["online"]["W"][0]["services"][0]["name"] == Value("mine"));
    REQUIRE(w.outputs<Gossip::SelfSeqRaised>().size() == 1);
    CHECK(w.outputs<Gossip::SelfSeqRaised>()[0].seq == 101);
    CHECK(w.outputs<Gossip::WentOffline>().empty());
    w.gossip.start(w.now);
    w.tick(3s);
    CHECK(w.sent(kRequest, "P")["online"]["W"][0] == Value(101));
  }

  TEST_CASE("whoever remembers more of an earlier life of this node makes it catch up") {
    Setup w;
    w.join();
    w.receive(kRequest, "P", {{"online", {{"P", arr(5, 1, 20)}, {"W", arr(8, 4, 70)}}}});
    CHECK(w.sent(kResponse, "P")["online"]["W"][0]["seq"] == Value(9));
    CHECK(w.nodes.self().seq == 9);
  }

  TEST_CASE("news of oneself in a response has no effect") {
    Setup w;
    w.join();
    w.receive(
        kResponse, "P",
        {{"online", {{"W", arr(info(99, arr(Value{{"name", "evil"}})), 5, 50)}}}, {"offline", {{"W", 120}}}});
    CHECK(w.output.empty());
    CHECK(w.nodes.self().seq == 3);
    CHECK(service_of(w.nodes.self()) == "mine");
    CHECK_FALSE(w.nodes.self().cpu.has_value());
    CHECK(w.nodes.self().available);
  }

  TEST_CASE("a peer that comes back with a larger number is taken whole") {
    Setup w;
    w.join("P", 5);
    w.lose("P");
    CHECK(w.nodes.find("P")->seq == 6);
    REQUIRE(w.outputs<Gossip::WentOffline>().size() == 1);
    CHECK(w.outputs<Gossip::WentOffline>()[0].unexpected);
    CHECK(w.sent(kRequest, "P")["offline"]["P"] == Value(6));  // If it lives, it can say so.
    w.receive(kResponse, "P", {{"online", {{"P", arr(info(7, arr(Value{{"name", "b"}})), 1, 20)}}}});
    const auto applied = w.outputs<Gossip::InfoApplied>();
    REQUIRE(applied.size() == 1);
    CHECK(applied[0].outcome.reconnected);
    CHECK(applied[0].outcome.services_changed);
    CHECK(w.nodes.find("P")->seq == 7);
    CHECK(service_of(*w.nodes.find("P")) == "b");
  }

  // The registry points into the old list, and looks there while it registers another node of the same
  // packet.
  TEST_CASE("the services that a peer announced before live until the news of it has been carried out") {
    Setup w;
    w.join("P", 5);
    w.receive(kResponse, "P", {{"online", {{"P", arr(info(6, arr(Value{{"name", "a"}})), 1, 20)}}}});
    const Value* before = &w.nodes.find("P")->services.items().front();
    w.receive(kResponse, "P", {{"online", {{"P", arr(info(7, arr(Value{{"name", "b"}})), 1, 20)}}}});
    const Gossip::InfoApplied* applied = nullptr;
    for (const Gossip::Output& one : w.output) {
      if (const auto* it = std::get_if<Gossip::InfoApplied>(&one)) applied = it;
    }
    REQUIRE(applied != nullptr);
    REQUIRE(applied->replaced_services.items().size() == 1);
    CHECK(&applied->replaced_services.items().front() == before);
    CHECK(service_of(*w.nodes.find("P")) == "b");
  }

  TEST_CASE("a peer that speaks while we hold it offline is asked at once") {
    Setup w;
    w.join("P", 5);
    w.lose("P");
    w.receive(kRequest, "P", {{"online", {{"P", arr(1, 0, 0)}}}});
    CHECK(w.sent(kRequest, "P")["offline"]["P"] == Value(6));
    CHECK(w.sent(kResponse, "P")["online"]["W"][0]["seq"] == Value(3));
    CHECK_FALSE(w.sent(kResponse, "P")["offline"].contains("P"));  // It would ignore it.
    w.receive(kHello, "P", {{"host", "host-p"}, {"port", 6001}});
    CHECK(w.sent(kRequest, "P")["offline"]["P"] == Value(6));
    w.receive(kResponse, "P", {{"online", {{"P", arr(info(5), 1, 20)}}}});
    CHECK_FALSE(w.nodes.find("P")->available);
    CHECK(w.sent(kRequest, "P")["offline"]["P"] == Value(6));
  }

  TEST_CASE("another process behind a name is noticed by its own word") {
    Setup w;
    w.join("P", 5);
    w.receive(kResponse, "P", {{"online", {{"P", arr(info(1, arr(), "two"), 0, 0)}}}});
    REQUIRE(w.outputs<Gossip::WentOffline>().size() == 1);  // What waits for the old one fails now.
    CHECK(w.sent(kRequest, "P")["offline"]["P"] == Value(6));
    w.receive(kResponse, "P", {{"online", {{"P", arr(info(7, arr(), "two"), 0, 0)}}}});
    CHECK(w.nodes.find("P")->instance_id == "two");

    w.receive(kHello, "P", {{"host", "host-p"}, {"port", 7777}});  // It listens elsewhere: another one again.
    CHECK(w.outputs<Gossip::WentOffline>().size() == 1);
    CHECK(w.learned("P") == "10.1.1.1:7777");
  }

  TEST_CASE("what a third node says of another process is no news unless its number is larger") {
    Setup w;
    w.join("P", 5);
    w.join("Q", 5);
    w.receive(kResponse, "Q", {{"online", {{"P", arr(info(5, arr(), "two"), 9, 9)}}}});
    CHECK(w.outputs<Gossip::InfoApplied>().empty());
    CHECK(w.nodes.find("P")->available);
  }

  TEST_CASE("load does not make an offline node available, and is not taken for it") {
    Setup w;
    w.join("P", 5);
    w.lose("P");
    w.receive(kResponse, "Q", {{"online", {{"P", arr(50, 99)}}}});
    CHECK_FALSE(w.nodes.find("P")->available);
    CHECK(w.nodes.find("P")->cpu == 20);
    CHECK(w.outputs<Gossip::InfoApplied>().empty());
  }

  TEST_CASE("the load of a new process counts anew") {
    Setup w;
    w.join("P", 5);
    w.receive(kResponse, "P", {{"online", {{"P", arr(100, 80)}}}});
    CHECK(w.nodes.find("P")->cpu == 80);
    w.receive(kResponse, "P", {{"online", {{"P", arr(99, 10)}}}});
    CHECK(w.nodes.find("P")->cpu == 80);
    w.receive(kResponse, "P", {{"online", {{"P", arr(info(6, arr(), "two"), 1, 33)}}}});
    CHECK(w.nodes.find("P")->cpu == 33);
    CHECK(w.nodes.find("P")->cpu_seq == 1);
  }

  TEST_CASE("our own load outbids what is remembered of an earlier life") {
    Setup w;
    w.join();
    w.gossip.local_cpu(30);
    CHECK(w.nodes.self().cpu_seq == 1);
    w.gossip.local_cpu(30);
    CHECK(w.nodes.self().cpu_seq == 1);
    w.receive(kRequest, "P", {{"online", {{"P", arr(5, 1, 20)}, {"W", arr(3, 40, 99)}}}});
    CHECK(w.sent(kResponse, "P")["online"]["W"] == arr(41, 30));
    CHECK(w.nodes.self().cpu == 30);
  }

  TEST_CASE("a request from nowhere cannot be answered, and is dropped") {
    Setup w;
    w.receive(kRequest, "P", {{"online", {{"P", arr(1, 0, 0)}}}});
    CHECK(w.output.empty());
    CHECK(w.nodes.find("P") == nullptr);
    CHECK(w.gossip.stats().packets_ignored == 1);
  }

  TEST_CASE("packets in our own name, and names that are none, are dropped") {
    Setup w;
    for (const std::string& sender : {std::string("W"), std::string(), std::string(300, 'x')}) {
      w.receive(kHello, sender, {{"host", "h"}, {"port", 1}});
      w.receive(kResponse, sender, {{"online", {{"X", arr(info(1), 0, 0)}}}});
      w.receive(kRequest, sender, {{"offline", {{"W", 5}}}});
      CHECK(w.output.empty());
    }
    CHECK(w.nodes.size() == 1);
    CHECK(w.nodes.self().seq == 3);
  }

  TEST_CASE("a HELLO that makes no sense is dropped") {
    Setup w;
    for (const Value& body : {Value(), arr(1), Value{{"host", "h"}}, Value{{"host", "h"}, {"port", 0}},
                              Value{{"host", "h"}, {"port", 65536}}, Value{{"host", "h"}, {"port", "6001"}},
                              Value{{"host", std::string(1000, 'h')}, {"port", 6001}}}) {
      w.receive(kHello, "P", body);
      CHECK(w.output.empty());
    }
    w.receive(kHello, "P", {{"host", 5}, {"port", 6001.0}});  // The address of the connection is enough.
    CHECK(w.learned("P") == "10.1.1.1:6001");
  }

  TEST_CASE("rows of the wrong type are passed over, the others count") {
    Setup w;
    w.join("P", 5);
    w.join("Q", 5);
    Value online{{"P", arr(5, 1, 20)}, {"W", arr(3, 0, 0)},   {"Q", "nonsense"},    {"A", 5},
                 {"B", arr()},         {"C", arr("1", 2, 3)}, {"D", arr(-1, 0, 0)}, {"E", arr(1.5, 0, 0)},
                 {"", arr(1, 0, 0)}};
    w.receive(kRequest, "P",
              {{"online", online}, {"offline", {{"W", "x"}, {"F", nullptr}, {"G", arr(1)}, {"Q", -7}}}});
    const Value answer = w.sent(kResponse, "P");
    CHECK(answer["online"].size() == 1);
    CHECK(answer["online"].contains("Q"));  // As if it had not been listed.
    CHECK(w.nodes.self().seq == 3);
    CHECK(w.gossip.stats().rows_ignored == 11);

    const Value rows{{"A", arr(info(2))},
                     {"B", arr(Value(), 1, 1)},
                     {"C", arr(Value{{"seq", "x"}}, 1, 1)},
                     {"D", arr(Value{{"seq", 1}, {"services", "many"}}, 1, 1)},
                     {"E", arr(1, 2, 3)},
                     {"F", "x"},
                     {"G", arr(Value{{"seq", -1}})},
                     {"H", arr()},
                     {"I", arr(info(2), "x", 1)},
                     {"J", arr(Value::object())}};
    w.receive(kResponse, "P", {{"online", rows}, {"offline", {{"P", "x"}, {"Q", 1e300}, {"Z", 5}}}});
    Ids taken;
    for (const auto& applied : w.outputs<Gossip::InfoApplied>()) taken.push_back(applied.outcome.node->id);
    CHECK(taken == Ids{"A", "I", "J"});
    CHECK(w.nodes.find("P")->available);
    CHECK(w.nodes.find("Q")->available);
    CHECK(w.nodes.find("Z") == nullptr);
  }

  TEST_CASE("no body whatever crashes it or touches ourselves") {
    Setup w;
    w.join("P", 5);
    w.join("Q", 6);
    SeededRandom random(11);
    const std::function<Value(int)> any = [&](int depth) -> Value {
      switch (random.below(depth > 3 ? 8 : 11)) {
        case 0:
          return nullptr;
        case 1:
          return random.below(2) == 0;
        case 2:
          return static_cast<std::int64_t>(random.below(20)) - 3;
        case 3:
          return random.next();
        case 4:
          return random.uniform() * 1e20 - 5e19;
        case 5:
          return "text";
        case 6:
          return Binary{"bytes"};
        case 7:
          return info(random.below(30), any(depth + 1), "i" + std::to_string(random.below(3)));
        case 8: {
          Value list = Value::array();
          for (std::size_t i = random.below(5); i > 0; --i) list.push_back(any(depth + 1));
          return list;
        }
        default: {
          Value object = Value::object();
          for (std::size_t i = random.below(6); i > 0; --i) {
            constexpr std::string_view kKeys[] = {"online", "offline", "P",    "Q",   "R",
                                                  "W",      "host",    "port", "seq", ""};
            object.set(kKeys[random.below(10)], any(depth + 1));
          }
          return object;
        }
      }
    };
    for (int i = 0; i < 20'000; ++i) {
      const PacketType types[] = {kHello, kRequest, kResponse};
      const char* senders[] = {"P", "Q", "R"};
      w.receive(types[random.below(3)], senders[random.below(3)], any(0));
      CHECK(w.nodes.self().available);
      CHECK(w.nodes.self().seq < kSeqMax);
    }
    CHECK(service_of(w.nodes.self()) == "mine");
    CHECK(w.nodes.self().instance_id == "instance of W");
  }

  TEST_CASE("a rumour cannot be so large that it could not be outbid") {
    Setup w;
    w.join();
    w.receive(kRequest, "P", {{"online", {{"P", arr(5, 1, 20)}}}, {"offline", {{"W", kSeqMax}}}});
    CHECK(w.nodes.self().seq == 3);
    w.receive(kRequest, "P", {{"online", {{"P", arr(5, 1, 20)}}}, {"offline", {{"W", kSeqMax - 1}}}});
    CHECK(w.nodes.self().seq == kSeqMax);
    Setup other;
    other.join("P");
    other.receive(kResponse, "P", {{"online", {{"V", arr(info(kSeqMax), 0, 0)}}}});
    CHECK(other.nodes.find("V")->available);
  }

  TEST_CASE("the number of nodes is bounded; what is beyond is ignored and counted") {
    Setup w({.nodes_max = 100});
    w.join("P", 5);
    Value online = Value::object();
    for (int i = 0; i < 150; ++i) online.set("n" + std::to_string(i), arr(info(1), 1, 1));
    w.receive(kResponse, "P", {{"online", online}});
    CHECK(w.nodes.size() == 100);
    CHECK(w.gossip.stats().rows_ignored > 0);
    w.receive(kHello, "late", {{"host", "h"}, {"port", 5}});
    CHECK(w.nodes.find("late") == nullptr);
    // When some are long gone there is room again.
    w.lose("n1");
    w.lose("n2");
    w.now += 2min;
    w.receive(kHello, "late", {{"host", "h"}, {"port", 5}});
    CHECK(w.nodes.find("late") != nullptr);
    CHECK(w.nodes.find("n1") == nullptr);
    CHECK(w.outputs<Gossip::Forgotten>().size() == 2);
  }

  TEST_CASE("a sighted node is asked at once; a listed one that is gone is asked again and again") {
    Setup w;
    w.gossip.sighted("P", {"10.1.1.1", 6001}, Gossip::Sighting::kListed, w.now);
    w.output = w.gossip.take_output();
    CHECK(w.learned("P") == "10.1.1.1:6001");
    CHECK(w.sent(kRequest, "P")["online"].contains("W"));
    CHECK_FALSE(w.sent(kRequest, "P").contains("offline"));  // It has no number yet.
    w.gossip.start(w.now);
    int asked = 0;
    for (int period = 0; period < 20; ++period) {
      w.lose("P");
      w.tick(2s);
      asked += w.sent(kRequest, "P").is_null() ? 0 : 1;
    }
    CHECK(asked == 20);
  }

  TEST_CASE("of many lost nodes each is tried every fourth period, among many online ones too") {
    Setup w;
    for (int i = 0; i < 30; ++i) w.join("on" + std::to_string(i));
    for (int i = 0; i < 8; ++i) w.join("off" + std::to_string(i));
    for (int i = 0; i < 8; ++i) w.lose("off" + std::to_string(i));
    w.gossip.start(w.now);
    w.tick(2s);
    for (int round = 0; round < 5; ++round) {
      std::multiset<std::string> tried;
      for (int period = 0; period < 4; ++period) {
        w.tick(2s);
        for (const auto& send : w.outputs<Gossip::Send>()) tried.insert(send.nodes.begin(), send.nodes.end());
      }
      for (int i = 0; i < 8; ++i) CHECK(tried.count("off" + std::to_string(i)) == 1);
    }
  }

  TEST_CASE("one node is not asked more often than contact_gap allows, and then it is") {
    Setup w;
    w.gossip.sighted("P", {"10.1.1.1", 6001}, Gossip::Sighting::kAnnounced, w.now);
    CHECK(w.gossip.take_output().size() == 2);
    for (int i = 0; i < 10; ++i)
      w.gossip.sighted("P", {"10.1.1.1", 6001}, Gossip::Sighting::kAnnounced, w.now);
    CHECK(w.gossip.take_output().empty());
    CHECK(w.gossip.next_tick() == w.now + 200ms);
    w.tick(200ms);
    CHECK_FALSE(w.sent(kRequest, "P").is_null());
    w.gossip.sighted("P", {"10.1.1.1", 6001}, Gossip::Sighting::kAnnounced, w.now);
    w.receive(kResponse, "P", {{"online", {{"P", arr(info(5), 1, 20)}}}});
    w.tick(1s);
    CHECK(w.sent(kRequest, "P").is_null());  // It is online meanwhile.
    CHECK(w.gossip.next_tick() == kNever);
  }

  TEST_CASE("a node is dialled where it was seen, else by its host name, else by its IP") {
    Setup w;
    w.join("P", 5);
    CHECK(w.nodes.find("P")->udp_address == "10.1.1.1");
    w.receive(kResponse, "P", {{"online", {{"Q", arr(info(5), 1, 20)}}}});
    CHECK(w.learned("Q") == "host-p:6001");
    CHECK(w.gossip.hello() == Value{{"host", "host-w"}, {"port", 6000}});
    // A name that leads nowhere: its address is tried next, then the name again.
    w.lose("Q");
    w.lose("Q");
    CHECK(w.learned("Q") == "10.0.0.9:6001");
    w.lose("Q");
    CHECK(w.learned("Q") == "host-p:6001");

    // The same for one that was seen at an address where it does not listen.
    w.lose("P");
    w.lose("P");
    CHECK(w.learned("P") == "host-p:6001");
    w.lose("P");
    CHECK(w.learned("P") == "10.0.0.9:6001");
    w.receive(kResponse, "P", {{"online", {{"P", arr(info(9), 1, 20)}}}});
    REQUIRE(w.nodes.find("P")->available);
    CHECK(w.learned("P") == "");  // What led to it stays.

    Setup by_ip({.use_hostname = false});
    by_ip.join("P", 5);
    by_ip.receive(kResponse, "P", {{"online", {{"Q", arr(info(5), 1, 20)}}}});
    CHECK(by_ip.learned("Q") == "10.0.0.9:6001");
    CHECK(by_ip.gossip.hello()["host"] == Value("10.0.0.1"));
  }

  TEST_CASE(
      "a node that listens on its loopback alone is dialled there, wherever its connection comes from") {
    Setup w;
    w.receive(kHello, "P", {{"host", "127.0.0.1"}, {"port", 6001}});  // From 10.1.1.1.
    CHECK(w.learned("P") == "127.0.0.1:6001");
  }

  TEST_CASE("addresses of IPv4 peers on dual-stack sockets are written plainly") {
    Setup w;
    w.gossip.receive(kHello, "P", {{"host", "h"}, {"port", 6001}}, "::ffff:10.2.2.2", w.now);
    CHECK(w.nodes.find("P")->udp_address == "10.2.2.2");
    w.gossip.receive(kHello, "Q", {{"host", "h"}, {"port", 6001}}, "fe80::1", w.now);
    CHECK(w.nodes.find("Q")->udp_address == "fe80::1");
  }

  TEST_CASE("a change of ours is pushed to a few peers as news") {
    Setup w({.fanout = 3});
    for (int i = 0; i < 10; ++i) w.join("p" + std::to_string(i));
    w.nodes.self().seq = 4;
    w.now += 1s;
    w.gossip.local_changed(w.now);
    w.output = w.gossip.take_output();
    const auto sends = w.outputs<Gossip::Send>();
    REQUIRE(sends.size() == 1);
    CHECK(sends[0].type == kResponse);
    CHECK(sends[0].nodes.size() == 3);
    CHECK(std::as_const(sends[0].body)["online"]["W"][0]["seq"] == Value(4));
    // A second change right behind it waits a little.
    w.nodes.self().seq = 5;
    w.gossip.local_changed(w.now);
    CHECK(w.gossip.take_output().empty());
    w.tick(w.gossip.next_tick() - w.now);
    REQUIRE(w.outputs<Gossip::Send>().size() == 1);
    CHECK(w.sent(kResponse, w.outputs<Gossip::Send>()[0].nodes[0])["online"]["W"][0]["seq"] == Value(5));
  }

  TEST_CASE("that a link broke is told to nobody; that it cannot be made again is") {
    Setup w;
    w.join("P", 5);
    w.join("Q", 5);
    w.lose("P");
    CHECK(w.sent(kResponse, "Q").is_null());
    CHECK(w.sent(kRequest, "Q").is_null());
    w.lose("P");
    CHECK(w.sent(kResponse, "Q")["offline"]["P"] == Value(6));
  }

  TEST_CASE("others' word that a node is offline counts only if it was not heard of a moment ago") {
    for (const bool heard : {true, false}) {
      CAPTURE(heard);
      Setup w;
      w.gossip.set_witness([heard](const Node& node) { return heard && node.id == "Q"; });
      w.join("P");
      w.join("Q");
      w.receive(kRequest, "P", {{"online", {{"P", arr(5, 1, 20)}}}, {"offline", {{"Q", 6}}}});
      CHECK(w.nodes.find("Q")->available == heard);
      w.join("Q", 7);
      w.receive(kResponse, "P", {{"offline", {{"Q", 8}}}});
      CHECK(w.nodes.find("Q")->available == heard);
      CHECK(w.outputs<Gossip::WentOffline>().size() == (heard ? 0 : 1));
    }
  }

  TEST_CASE("a node that hangs is offline, and told of, at once") {
    Setup w;
    w.join("P");
    w.join("Q");
    w.now += 1s;
    w.gossip.node_hung("Q", w.now);
    w.output = w.gossip.take_output();
    CHECK(w.outputs<Gossip::WentOffline>().size() == 1);
    CHECK(w.sent(kResponse, "P")["offline"]["Q"] == Value(6));
    CHECK(w.sent(kRequest, "Q")["offline"]["Q"] == Value(6));  // It reads that when it thaws.
  }

  TEST_CASE("who leaves tells everyone, and does not wait for it") {
    Setup w;
    for (int i = 0; i < 20; ++i) w.join("P" + std::to_string(i));
    w.gossip.local_changed(w.now);
    w.nodes.self().services = Value::array();
    w.gossip.leaving(w.now);
    w.output = w.gossip.take_output();
    std::set<std::string> told;
    for (const auto& send : w.outputs<Gossip::Send>()) {
      if (send.type == kResponse && send.body["online"]["W"][0]["services"].empty()) {
        told.insert(send.nodes.begin(), send.nodes.end());
      }
    }
    CHECK(told.size() == 20);
  }

  TEST_CASE("what the requester knows better is fetched at once") {
    Setup w;
    w.join("P", 5);
    w.join("Q", 5);
    w.receive(kRequest, "P", {{"online", {{"P", arr(5, 1, 20)}, {"W", arr(3, 0, 0)}, {"Q", arr(5, 1, 20)}}}});
    CHECK(w.output.empty());
    w.receive(kRequest, "P", {{"online", {{"P", arr(6, 1, 20)}, {"W", arr(3, 0, 0)}, {"Q", arr(5, 1, 20)}}}});
    CHECK_FALSE(w.sent(kRequest, "P").is_null());
    w.receive(kRequest, "P",
              {{"online",
                {{"P", arr(5, 1, 20)}, {"W", arr(3, 0, 0)}, {"Q", arr(5, 1, 20)}, {"new", arr(1, 0, 0)}}}});
    CHECK_FALSE(w.sent(kRequest, "P").is_null());
  }

  TEST_CASE("a long answer is sent in packets that a JavaScript node accepts") {
    Setup w({.packet_bytes_max = 20'000});
    Value services = Value::array();
    for (int i = 0; i < 50; ++i) services.push_back(Value{{"name", "service number " + std::to_string(i)}});
    w.join("P", 5);
    Value online = Value::object();
    for (int i = 0; i < 60; ++i) online.set("n" + std::to_string(i), arr(info(1, services), 1, 1));
    w.receive(kResponse, "P", {{"online", online}});
    w.receive(kRequest, "P", {{"online", {{"P", arr(5, 1, 20)}}}});
    std::set<std::string> told;
    std::size_t packets = 0;
    for (const auto& send : w.outputs<Gossip::Send>()) {
      if (send.type != kResponse) continue;
      ++packets;
      CHECK(send.nodes == Ids{"P"});
      CHECK(to_json(send.body).size() < 25'000);
      for (const Member& row : send.body["online"].members()) CHECK(told.insert(row.key).second);
    }
    CHECK(packets > 3);
    CHECK(told.size() == 61);  // W and all the others.
  }

  TEST_CASE("a node that announced itself is forgotten long after it left; a listed one never") {
    Setup w({.forget_after = 10min});
    w.gossip.sighted("listed", {"10.1.1.1", 6001}, Gossip::Sighting::kListed, w.now);
    w.gossip.sighted("announced", {"10.1.1.2", 6001}, Gossip::Sighting::kAnnounced, w.now);
    w.gossip.start(w.now);
    w.tick(9min);
    CHECK(w.outputs<Gossip::Forgotten>().empty());
    w.tick(2min);
    REQUIRE(w.outputs<Gossip::Forgotten>().size() == 1);
    CHECK(w.outputs<Gossip::Forgotten>()[0].node == "announced");
    CHECK(w.nodes.find("listed") != nullptr);
  }

  TEST_CASE("an info says all that a peer needs, and who it is about when it is forwarded") {
    Setup w;
    w.nodes.self().metadata = {{"zone", "eu"}};
    w.join("P", 5);
    w.join("Q", 5);
    w.receive(kRequest, "P", {{"online", {{"P", arr(5, 1, 20)}}}});
    const Value own = w.sent(kResponse, "P")["online"]["W"];
    CHECK(own[0] == Value{{"ipList", arr("10.0.0.1")},
                          {"hostname", "host-w"},
                          {"instanceID", "instance of W"},
                          {"client", Value::object()},
                          {"config", Value::object()},
                          {"port", 6000},
                          {"seq", 3},
                          {"metadata", {{"zone", "eu"}}},
                          {"services", arr(Value{{"name", "mine"}})}});
    CHECK(own[1] == Value(0));
    CHECK(own[2] == Value(0));
    const Value forwarded = w.sent(kResponse, "P")["online"]["Q"];
    CHECK(forwarded[0]["sender"] == Value("Q"));
    CHECK(forwarded[2] == Value(20));
  }
}
