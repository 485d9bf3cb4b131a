#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/random/random.h"
#include "lib/runtime/runtime.h"
#include "lib/sim/sim_fabric.h"
#include "lib/sim/sim_loop.h"
#include "lib/sim/sim_world.h"

namespace weft {

// The sockets of one simulated process.
class SimNetwork final : public Network {
 public:
  explicit SimNetwork(SimLoop& loop) : loop_(loop), fabric_(loop.world().fabric()) {}

  std::unique_ptr<Stream> connect(const SocketAddress& to, const StreamOptions& options) override;
  Result<std::unique_ptr<StreamListener>> listen(const SocketAddress& at, const StreamOptions& options,
                                                 AcceptCallback on_accept) override;
  Result<std::unique_ptr<DatagramSocket>> open_datagram(const DatagramOptions& options,
                                                        DatagramCallback on_datagram) override;
  // One interface, eth0, beside the loopback.
  [[nodiscard]] std::vector<InterfaceAddress> interfaces() const override;
  [[nodiscard]] std::string hostname() const override { return loop_.host().name(); }

 private:
  SimLoop& loop_;
  SimFabric& fabric_;
};

// A machine that says what the test wants it to say.
class SimSystemProbe final : public SystemProbe {
 public:
  SimSystemProbe(SimLoop& loop, std::int64_t process_id) : loop_(loop), process_id_(process_id) {}

  void set_cpu_percent(int percent) { cpu_percent_ = percent; }
  [[nodiscard]] int cpu_percent() override { return cpu_percent_; }
  [[nodiscard]] Value health() override;
  [[nodiscard]] std::int64_t process_id() const override { return process_id_; }

 private:
  SimLoop& loop_;
  std::int64_t process_id_;
  int cpu_percent_ = 10;
};

struct SimProcessOptions {
  double clock_rate = 1.0;  // Of the monotonic clock; see SimLoop.
};

// One process in a simulated world: all that a node needs of it, and the ways it can fare badly.
//
// To crash one: kill(), then destroy the node, then this. What the node does after kill() has no effect, so
// it cannot say goodbye. To restart it: make another one on the same host.
//
// Ownership: the world and the host outlive it; it outlives the node.
class SimRuntime {
 public:
  SimRuntime(SimWorld& world, SimHost& host, const SimProcessOptions& options = {});
  // Kills what was not killed.
  ~SimRuntime();
  SimRuntime(const SimRuntime&) = delete;
  SimRuntime& operator=(const SimRuntime&) = delete;

  // What the node is given. Its log lines go into the world's trace.
  [[nodiscard]] Runtime runtime() { return {loop_, network_, random_, system_, log_}; }

  [[nodiscard]] SimLoop& loop() { return loop_; }
  [[nodiscard]] SimNetwork& network() { return network_; }
  [[nodiscard]] SimHost& host() { return loop_.host(); }
  [[nodiscard]] SimSystemProbe& system() { return system_; }

  // The kernel closes its sockets; peers see the end, or a reset over unread bytes, or nothing at all when
  // the host has no power.
  void kill();
  void freeze() { loop_.freeze(); }
  void thaw() { loop_.thaw(); }

 private:
  SimLoop loop_;
  SimNetwork network_;
  SeededRandom random_;
  SimSystemProbe system_;
  std::shared_ptr<LogSink> log_;
};

}  // namespace weft
