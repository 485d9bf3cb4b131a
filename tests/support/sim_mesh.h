#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/broker.h"
#include "lib/sim/sim_bus.h"
#include "lib/sim/sim_runtime.h"
#include "lib/sim/sim_world.h"
#include "transporters/memory/memory_bus.h"

namespace weft::test {

template <typename Awaitable>
struct AwaitedBy {
  using Type = decltype(std::declval<Awaitable&>().await_resume());
};
template <typename T>
struct AwaitedBy<Task<T>> {
  using Type = T;
};

template <typename Awaitable>
Task<typename AwaitedBy<Awaitable>::Type> as_task(Awaitable awaitable) {
  co_return co_await std::move(awaitable);
}

// A service made in place.
std::shared_ptr<Service> make_service(std::string name, const std::function<void(Service&)>& describe = {});

// Brokers in a simulated world, each in a process and on a host of its own. A test is plain code: it says
// what happens, and await() lets the world run until that has ended.
//
//   SimMesh mesh;
//   mesh.add("a");
//   mesh.add("b").add_service(make_service("math", [](Service& s) { s.action("one", …); }));
//   mesh.start();
//   CHECK(mesh.await(mesh["a"].call("math.one")).i64() == 1);
//
// WEFT_SIM_TRACE=1 in the environment shows the log of every node in virtual time.
class SimMesh {
 public:
  enum class Carrier { kMemory, kBus, kTcp };
  // Over a bus of the sim's own by default: one that can be cut off, killed and started again.
  explicit SimMesh(Carrier carrier = Carrier::kBus, std::uint64_t seed = 1);
  ~SimMesh();

  // A new broker; not started. A name that was there before gets its old host.
  Broker& add(const std::string& id, BrokerOptions options = {});
  [[nodiscard]] Broker& operator[](std::string_view id) const;
  [[nodiscard]] SimRuntime& process(std::string_view id) const;
  // Starts every broker that is new, side by side, and waits until all know of each other.
  void start();
  // Starts one and waits until it and the others know of each other.
  Broker& start(std::string_view id);
  // Without goodbye.
  void crash(std::string_view id);
  // Stops it gracefully and takes it away.
  void stop(std::string_view id);

  // Lets the world run until `awaitable` has ended, and gives or throws what it gives or throws.
  template <typename Awaitable>
  auto await(Awaitable awaitable, Duration limit = std::chrono::minutes(2)) {
    auto task = as_task(std::move(awaitable));
    bool done = false;
    task.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &done);
    const bool in_time = done || world.run_until([&] { return done; }, limit);
    REQUIRE_MESSAGE(in_time, "what is awaited did not end in time");
    return task.take();
  }
  // Lets the world run until `condition`; false when it did not come about.
  [[nodiscard]] bool until(FunctionRef<bool()> condition, Duration limit = std::chrono::minutes(2)) {
    return condition() || world.run_until(condition, limit);
  }
  void run_for(Duration span) { world.run_for(span); }
  [[nodiscard]] Duration elapsed() const { return world.elapsed(); }

  // Whether `id` holds `other` for available.
  [[nodiscard]] bool sees(std::string_view id, std::string_view other) const;
  // The row of `other` in `$node.list` of `id`.
  [[nodiscard]] Value node_row(std::string_view id, std::string_view other) const;

  [[nodiscard]] Carrier carrier() const { return carrier_; }
  [[nodiscard]] std::unique_ptr<Transporter> make_transporter(SimRuntime& process);

  SimWorld world;
  std::unique_ptr<SimBus> bus;  // Null with other carriers.

 private:
  struct Node {
    std::unique_ptr<SimRuntime> process;
    std::unique_ptr<Broker> broker;
    bool is_new = true;
  };

  void settle();

  Carrier carrier_;
  std::shared_ptr<MemoryBus> memory_ = std::make_shared<MemoryBus>();
  std::map<std::string, Node, std::less<>> nodes_;
};

// A node that speaks the wire protocol word by word.
class ScriptedNode final : private Transporter::Listener {
 public:
  ScriptedNode(SimMesh& mesh, std::string id);
  ~ScriptedNode();
  ScriptedNode(const ScriptedNode&) = delete;
  ScriptedNode& operator=(const ScriptedNode&) = delete;

  // `body` gets ver and sender where it has none. Without a node it is for all.
  void send(PacketType type, Value body = Value::object(), std::string_view node = {});
  // Text that need not be JSON.
  void send_text(PacketType type, std::string_view text, std::string_view node);
  // INFO to everyone.
  void announce(int seq, Value services = Value::array(), std::string_view instance = "i-1");

  struct Packet {
    PacketType type;
    Value body;
    Duration at;
  };
  [[nodiscard]] std::size_t count(PacketType type) const;
  // The last packet of a type; null if there was none.
  [[nodiscard]] Value last(PacketType type) const;

 private:
  void on_frame(const FrameView& frame) override;
  void on_reconnected() override {}
  void on_disconnected(const Error&) override {}
  void on_node_sighted(std::string_view, const SocketAddress&, bool) override {}
  void on_node_lost(std::string_view, const Error&) override {}
  void on_undelivered(std::string_view, std::string_view) override {}

  SimMesh& mesh_;
  const std::string id_;
  SimRuntime process_;

 public:
  std::vector<Packet> received;  // Its own broadcasts left out.
  std::function<void(const Packet&)> on_packet;
  std::unique_ptr<Transporter> transporter;
};

// What a service looks like in INFO: its actions by bare name, its events by pattern.
[[nodiscard]] Value service_info(std::string_view name, const std::vector<std::string>& actions,
                                 const std::vector<std::string>& events = {});

}  // namespace weft::test
