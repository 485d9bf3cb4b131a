#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "broker/broker.h"
#include "lib/sim/sim_bus.h"
#include "lib/sim/sim_fabric.h"
#include "lib/sim/sim_runtime.h"
#include "lib/sim/sim_world.h"

// Tests of your own nodes in a simulated world: real brokers on virtual time and a network whose faults you
// command. See docs/testing.md.
namespace weft::sim {

using Link = SimLink;

enum class Carrier : std::uint8_t {
  kBus,     // A bus that can be cut off, frozen and restarted, with the manners of a NATS server.
  kTcp,     // Straight from node to node, found by multicast.
  kMemory,  // No network at all.
};

struct ClusterOptions {
  std::uint64_t seed = 1;  // All there is to a run: the same seed, the same events in the same order.
  Carrier carrier = Carrier::kBus;
  BrokerOptions broker;                         // Of every node; the name is filled in.
  Duration patience = std::chrono::minutes(2);  // What await() and start() wait at most, in virtual time.
  std::function<void(std::string_view)> trace;  // Gets a line for each log record and note of the run.
};

// An event as a recorder saw it.
struct RecordedEvent {
  Duration at{};  // Since the world began.
  std::string name;
  std::string sender;  // The node that emitted it.
  Value payload;
};

class Cluster;

// What `awaitable` gives.
template <typename Awaitable>
struct Awaited {
  using Type = decltype(std::declval<Awaitable&>().await_resume());
};
template <typename T>
struct Awaited<Task<T>> {
  using Type = T;
};

// One node of a cluster: what it offers, and its broker while it lives.
class Node {
 public:
  // A service that is made anew at each start of the node: a class of yours …
  template <typename S, typename... Args>
  Node& offer(Args... args) {
    factories_.push_back([args...] { return std::make_shared<S>(args...); });
    return *this;
  }
  // … or one described in place, such as a fake.
  Node& offer(std::string name, std::function<void(Service&)> describe);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool is_running() const { return broker_ != nullptr; }
  // Of a running node; it is another one after a restart.
  [[nodiscard]] Broker& broker() const;
  // Its options, before it is started.
  [[nodiscard]] BrokerOptions& options() { return options_; }
  // Its process: load, slowness, the pace of its clock.
  [[nodiscard]] SimRuntime& process() const;

 private:
  friend class Cluster;
  Node(std::string name, BrokerOptions options, SimHost& host)
      : name_(std::move(name)), options_(std::move(options)), host_(host) {}
  void require_running() const;

  std::string name_;
  BrokerOptions options_;
  SimHost& host_;
  std::vector<std::function<std::shared_ptr<Service>()>> factories_;
  std::unique_ptr<SimRuntime> process_;
  std::unique_ptr<Broker> broker_;
};

// Nodes in a world of their own. The test is plain code: it says what happens, and await() and run_for() let
// virtual time pass, which costs no real time.
//
//   sim::Cluster cluster;
//   cluster.add("stock-1").offer<Stock>();
//   cluster.add("shop").offer<Shop>();
//   cluster.start();
//   const Value left = cluster.await(cluster["shop"].call("shop.buy", {{"item", "tea"}}));
//
// What is wrong with the test itself (an unknown name, something that does not end in time) is thrown as a
// weft::Exception. Thread: one, for everything.
class Cluster {
 public:
  using Names = std::vector<std::string>;

  explicit Cluster(ClusterOptions options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // A node on a machine of its own. It runs after start().
  Node& add(const std::string& name);
  [[nodiscard]] Node& node(std::string_view name) const;
  // The broker of a running node.
  [[nodiscard]] Broker& operator[](std::string_view name) const { return node(name).broker(); }

  // Starts all nodes that do not run, and waits until everyone knows what everyone offers.
  void start();
  void start(std::string_view name);
  // In good order: others are told, running work ends.
  void stop(std::string_view name);
  // As SIGKILL does: no goodbye, nothing remembered. start() brings it back under the same name.
  void crash(std::string_view name);
  // As SIGSTOP and SIGCONT do.
  void freeze(std::string_view name) { node(name).process().freeze(); }
  void thaw(std::string_view name) { node(name).process().thaw(); }
  // Waits until all running nodes know of each other and of what they offer. Not across a partition.
  void settle();

  // Nothing passes between the two groups; with one group, between it and all others, the bus among those.
  void partition(const Names& group);
  void partition(const Names& group, const Names& others);
  // Nothing gets from one to the other.
  void cut(std::string_view from, std::string_view to);
  // All wires are whole again.
  void heal();
  // Of all wires, or of one direction of one.
  void set_link(const Link& link);
  void set_link(std::string_view from, std::string_view to, const Link& link);
  // Breaks the connections between two nodes.
  void reset(std::string_view a, std::string_view b);
  void stop_bus();
  void start_bus();

  // Lets the world run until `awaitable` (a call, a Task) has ended, and gives or throws what it gives or
  // throws.
  template <typename Awaitable>
  auto await(Awaitable awaitable) {
    auto task = to_task(std::move(awaitable));
    bool done = false;
    task.start([](void* flag) { *static_cast<bool*>(flag) = true; }, &done);
    if (!until([&done] { return done; })) refuse("what is awaited did not end in time");
    return task.take();
  }
  // Lets the world run until `condition`; false when it did not come about in time.
  [[nodiscard]] bool until(FunctionRef<bool()> condition);
  void run_for(Duration span) { world_.run_for(span); }
  // Virtual time since the world began.
  [[nodiscard]] Duration elapsed() const { return world_.elapsed(); }

  // Whether `name` holds `other` for available.
  [[nodiscard]] bool sees(std::string_view name, std::string_view other) const;

  // Writes down every event of that pattern that is emitted or broadcast from now on, in a node of its own
  // called "recorder". Before start().
  void record(const std::string& pattern);
  [[nodiscard]] const std::vector<RecordedEvent>& recorded() const { return recorded_; }
  // How many of them have this name.
  [[nodiscard]] std::size_t count(std::string_view event) const;

  // Equal for equal runs, and different for nearly all others.
  [[nodiscard]] std::uint64_t trace_hash() const { return world_.trace_hash(); }
  // For more: machines, power, clocks, the script of the world.
  [[nodiscard]] SimWorld& world() { return world_; }
  [[nodiscard]] SimFabric& fabric() { return world_.fabric(); }
  // The machine of a node.
  [[nodiscard]] SimHost& host(std::string_view name) const { return node(name).host_; }

 private:
  struct Buses;

  template <typename Awaitable>
  static Task<typename Awaited<Awaitable>::Type> to_task(Awaitable awaitable) {
    co_return co_await std::move(awaitable);
  }
  [[noreturn]] void refuse(const std::string& what) const;
  [[nodiscard]] std::unique_ptr<Transporter> make_transporter(SimRuntime& process);
  [[nodiscard]] Task<void> begin(Node& node);
  static void end(Node& node);
  [[nodiscard]] std::string why_unsettled() const;
  [[nodiscard]] std::vector<SimHost*> hosts(const Names& names) const;

  const ClusterOptions options_;
  SimWorld world_;
  std::unique_ptr<Buses> buses_;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> nodes_;  // In order of names.
  std::vector<RecordedEvent> recorded_;
};

}  // namespace weft::sim
