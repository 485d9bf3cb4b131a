#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "broker/broker.h"
#include "lib/sim/sim_runtime.h"
#include "tests/sim/journal.h"
#include "tests/sim/plan.h"

namespace weft::swarm {

class Swarm;

// One node of the swarm through all its lives. Only it makes and ends processes and brokers.
class SwarmNode {
 public:
  enum class State : std::uint8_t { kDown, kStarting, kUp, kStopping };

  SwarmNode(Swarm& swarm, const NodePlan& plan, std::size_t index);
  ~SwarmNode();
  SwarmNode(const SwarmNode&) = delete;
  SwarmNode& operator=(const SwarmNode&) = delete;

  [[nodiscard]] const std::string& name() const { return plan_.name; }
  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] SimHost& host() const { return host_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool is_up() const { return state_ == State::kUp; }
  [[nodiscard]] bool is_frozen() const { return process_ != nullptr && process_->loop().is_frozen(); }
  [[nodiscard]] LifeId life() const { return life_; }
  [[nodiscard]] Instant up_since() const { return up_since_; }  // In the world's time.
  [[nodiscard]] Broker& broker() const { return *broker_; }
  [[nodiscard]] std::vector<ServicePlan>& services() { return services_; }
  [[nodiscard]] bool offers(std::string_view full_name) const;

  void start();
  // Gracefully; it is down when that has ended.
  void stop();
  // Without goodbye. The process may be in any state.
  void crash();
  void freeze();
  void thaw();
  void set_turn_cost(Duration cost);
  // Runs when the process gets round to it.
  void post(EventLoop::Callback work) { process_->loop().post(std::move(work)); }
  void add_service(const ServicePlan& service);
  void remove_service(const std::string& full_name);

  // How long the process was held up since then (in its own clock): what it does may be that much later.
  [[nodiscard]] Duration lateness(Instant since) const;
  [[nodiscard]] Instant local_now() const { return process_->loop().now(); }

 private:
  [[nodiscard]] std::unique_ptr<Transporter> make_transporter();
  void watch(Broker& broker);
  void on_started();
  void on_stopped();
  void bury();
  void destroy();

  Swarm& swarm_;
  const NodePlan plan_;
  const std::size_t index_;
  SimHost& host_;
  State state_ = State::kDown;
  LifeId life_ = 0;
  Instant up_since_{};
  std::vector<ServicePlan> services_;
  std::unique_ptr<SimRuntime> process_;
  std::unique_ptr<Broker> broker_;
  Task<void> starting_;
  Task<void> stopping_;
  LocalListener listener_;
  std::map<std::string, bool, std::less<>> view_;  // Which nodes it holds available, by its own events.
  struct Freeze {
    Instant from;
    Instant to;  // kNever while it lasts.
  };
  std::vector<Freeze> freezes_;  // Of this life, in its own clock.
  bool is_stopped_ = false;      // Its stop() has ended.
  bool was_slow_ = false;
};

}  // namespace weft::swarm
