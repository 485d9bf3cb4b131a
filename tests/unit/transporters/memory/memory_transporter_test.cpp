#include "transporters/memory/memory_transporter.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/poll_loop.h"
#include "tests/support/recording_listener.h"

using namespace weft;
using weft::test::PollLoop;
using weft::test::RecordingListener;
using Lines = std::vector<std::string>;

namespace {

// A transporter that is on the bus, and what it heard.
struct Node {
  Node(PollLoop& loop, const std::shared_ptr<MemoryBus>& bus, std::string id, std::string name_space = {})
      : memory(loop, bus) {
    transporter().start({std::move(id), std::move(name_space)}, listener,
                        [this](Result<> outcome) { started = outcome.ok(); });
  }
  Transporter& transporter() { return memory; }

  RecordingListener listener;
  MemoryTransporter memory;
  bool started = false;
};

const std::string kA[] = {"math.add"};

}  // namespace

TEST_SUITE("memory transporter") {
  TEST_CASE("a targeted frame reaches its node alone, in a later turn, in order of sending") {
    PollLoop loop;
    const auto bus = std::make_shared<MemoryBus>();
    Node a(loop, bus, "a"), b(loop, bus, "b");
    CHECK(a.transporter().send("b", PacketType::kRequest, "1").ok());
    CHECK(a.transporter().send("b", PacketType::kEvent, "2").ok());
    CHECK(b.listener.lines.empty());
    loop.drain();
    CHECK(a.started);
    CHECK(b.started);
    CHECK(b.listener.lines == Lines{"REQ 1", "EVENT 2"});
    CHECK(a.listener.lines.empty());
  }

  TEST_CASE("the first upcall comes after start() is done") {
    PollLoop loop;
    const auto bus = std::make_shared<MemoryBus>();
    Node a(loop, bus, "a"), b(loop, bus, "b");
    bool started_before_frame = false;
    b.listener.on_each_frame = [&](const FrameView&) { started_before_frame = b.started; };
    CHECK(a.transporter().send("b", PacketType::kRequest, "1").ok());
    loop.drain();
    CHECK(started_before_frame);
  }

  TEST_CASE("a broadcast reaches every node of the namespace, the sender too, and no other namespace") {
    PollLoop loop;
    const auto bus = std::make_shared<MemoryBus>();
    Node a(loop, bus, "a"), b(loop, bus, "b"), other(loop, bus, "b", "dev");
    CHECK(a.transporter().broadcast(PacketType::kHeartbeat, "hb").ok());
    CHECK(a.transporter().send("b", PacketType::kPing, "p").ok());
    loop.drain();
    CHECK(a.listener.lines == Lines{"HEARTBEAT hb"});
    CHECK(b.listener.lines == Lines{"HEARTBEAT hb", "PING p"});
    CHECK(other.listener.lines.empty());
  }

  TEST_CASE("a frame to a node that is not there comes back as undelivered, if it has a correlation") {
    PollLoop loop;
    const auto bus = std::make_shared<MemoryBus>();
    Node a(loop, bus, "a");
    auto b = std::make_unique<Node>(loop, bus, "b");
    CHECK(a.transporter().send("gone", PacketType::kRequest, "1", "id-1").ok());
    CHECK(a.transporter().send("gone", PacketType::kResponse, "2").ok());
    CHECK(a.transporter().send("b", PacketType::kRequest, "3", "id-3").ok());
    a.transporter().probe("b");
    loop.drain();
    CHECK(a.listener.lines == Lines{"undelivered gone id-1"});
    CHECK(b->listener.lines == Lines{"REQ 3"});

    b.reset();
    CHECK(a.transporter().send("b", PacketType::kRequest, "4", "id-4").ok());
    a.transporter().probe("b");
    loop.drain();
    CHECK(a.listener.lines == Lines{"undelivered gone id-1", "undelivered b id-4", "undelivered b "});
  }

  TEST_CASE("both of two members with one node ID get what is sent to it") {
    PollLoop loop;
    const auto bus = std::make_shared<MemoryBus>();
    Node a(loop, bus, "a"), first(loop, bus, "twin"), second(loop, bus, "twin");
    CHECK(a.transporter().send("twin", PacketType::kInfo, "i").ok());
    loop.drain();
    CHECK(first.listener.lines == Lines{"INFO i"});
    CHECK(second.listener.lines == Lines{"INFO i"});
  }

  TEST_CASE("after stop() nothing is heard and nothing can be sent") {
    PollLoop loop;
    const auto bus = std::make_shared<MemoryBus>();
    Node a(loop, bus, "a"), b(loop, bus, "b");
    CHECK(a.transporter().send("b", PacketType::kRequest, "late").ok());
    bool stopped = false;
    b.transporter().stop([&](Result<> outcome) { stopped = outcome.ok(); });
    CHECK(!stopped);
    loop.drain();
    CHECK(stopped);
    CHECK(b.listener.lines.empty());
    const Result<> refused = b.transporter().send("a", PacketType::kRequest, "x");
    REQUIRE(!refused.ok());
    CHECK(refused.error().error_class() == ErrorClass::kBrokerDisconnected);
    CHECK(!b.transporter().broadcast(PacketType::kInfo, "x").ok());

    b.transporter().start({"b", ""}, b.listener, [](Result<>) {});
    CHECK(a.transporter().send("b", PacketType::kRequest, "again").ok());
    loop.drain();
    CHECK(b.listener.lines == Lines{"REQ again"});
  }

  TEST_CASE("a handler may stop its transporter from inside an upcall; the rest is dropped") {
    PollLoop loop;
    const auto bus = std::make_shared<MemoryBus>();
    Node a(loop, bus, "a"), b(loop, bus, "b");
    b.listener.on_each_frame = [&](const FrameView&) { b.transporter().stop([](Result<>) {}); };
    CHECK(a.transporter().send("b", PacketType::kRequest, "1").ok());
    CHECK(a.transporter().send("b", PacketType::kRequest, "2").ok());
    loop.drain();
    CHECK(b.listener.lines == Lines{"REQ 1"});
  }

  TEST_CASE("balanced requests go round the nodes that offer the action") {
    PollLoop loop;
    const auto bus = std::make_shared<MemoryBus>();
    Node a(loop, bus, "a"), b(loop, bus, "b"), c(loop, bus, "c");
    b.transporter().subscribe_balanced(kA, {});
    c.transporter().subscribe_balanced(kA, {});
    for (const char* payload : {"1", "2", "3", "4"}) {
      CHECK(a.transporter().publish_balanced_request("math.add", payload).ok());
    }
    CHECK(a.transporter().publish_balanced_request("math.sub", "nobody").ok());
    loop.drain();
    CHECK(b.listener.lines == Lines{"REQ 1", "REQ 3"});
    CHECK(c.listener.lines == Lines{"REQ 2", "REQ 4"});
    CHECK(a.listener.lines.empty());

    b.transporter().subscribe_balanced({}, {});
    CHECK(a.transporter().publish_balanced_request("math.add", "5").ok());
    loop.drain();
    CHECK(c.listener.lines == Lines{"REQ 2", "REQ 4", "REQ 5"});
  }

  TEST_CASE("balanced events reach one member of their group, whatever number of its patterns match") {
    PollLoop loop;
    const auto bus = std::make_shared<MemoryBus>();
    Node a(loop, bus, "a"), b(loop, bus, "b"), c(loop, bus, "c");
    const BalancedEvent many[] = {
        {"mail", "user.*"}, {"mail", "user.created"}, {"mail", "order.**"}, {"log", "**"}};
    const BalancedEvent few[] = {{"mail", "user.created"}};
    b.transporter().subscribe_balanced({}, many);
    c.transporter().subscribe_balanced({}, few);
    CHECK(a.transporter().publish_balanced_event("mail", "user.created", "1").ok());
    CHECK(a.transporter().publish_balanced_event("mail", "user.created", "2").ok());
    CHECK(a.transporter().publish_balanced_event("mail", "order.a.b", "3").ok());
    CHECK(a.transporter().publish_balanced_event("log", "x", "4").ok());
    CHECK(a.transporter().publish_balanced_event("mail", "user.a.b", "nobody").ok());
    CHECK(a.transporter().publish_balanced_event("other", "user.created", "nobody").ok());
    loop.drain();
    CHECK(b.listener.lines == Lines{"EVENT 1", "EVENT 3", "EVENT 4"});
    CHECK(c.listener.lines == Lines{"EVENT 2"});
  }

  TEST_CASE("a member that does not read is refused more than its mailbox holds") {
    PollLoop loop;
    const auto bus = std::make_shared<MemoryBus>(MemoryBusOptions{.mailbox_bytes_max = 1000});
    Node a(loop, bus, "a"), b(loop, bus, "b");
    const std::string payload(400, 'x');
    CHECK(a.transporter().send("b", PacketType::kRequest, payload).ok());
    CHECK(a.transporter().send("b", PacketType::kRequest, payload).ok());
    const Result<> refused = a.transporter().send("b", PacketType::kRequest, payload);
    REQUIRE(!refused.ok());
    CHECK(refused.error().error_class() == ErrorClass::kQueueIsFull);
    CHECK(refused.error().retryable());
    CHECK(a.transporter().broadcast(PacketType::kHeartbeat, payload).ok());
    loop.drain();
    CHECK(b.listener.lines.size() == 2);
    CHECK(a.listener.lines.size() == 1);
    CHECK(
        a.transporter().send("b", PacketType::kRequest, std::string(5000, 'y')).ok());  // Alone it may pass.
    loop.drain();
    CHECK(b.listener.lines.size() == 3);
  }

  TEST_CASE("members on loops of different threads answer each other") {
    constexpr int kCalls = 5000;
    const auto bus = std::make_shared<MemoryBus>();
    std::atomic<bool> is_ready{false}, is_over{false};
    std::thread server([&] {
      PollLoop loop;
      Node b(loop, bus, "b");
      b.listener.on_each_frame = [&](const FrameView& frame) {
        CHECK(b.transporter().send("a", PacketType::kResponse, frame.payload).ok());
      };
      is_ready = true;
      CHECK(loop.run_until([&] { return is_over.load(); }));
    });
    PollLoop loop;
    Node a(loop, bus, "a");
    CHECK(loop.run_until([&] { return is_ready.load(); }));
    for (int i = 0; i < kCalls; ++i) {
      CHECK(a.transporter().send("b", PacketType::kRequest, std::to_string(i)).ok());
    }
    CHECK(loop.run_until([&] { return a.listener.lines.size() == kCalls; }));
    CHECK(a.listener.lines.back() == "RES " + std::to_string(kCalls - 1));
    is_over = true;
    server.join();
  }

  TEST_CASE("a hub gives one bus to one name") {
    MemoryHub hub;
    CHECK(hub.bus("x") == hub.bus("x"));
    CHECK(hub.bus("x") != hub.bus("y"));
  }
}
