#pragma once

#include <memory>

#include "broker/broker.h"
#include "tests/sim/plan.h"
#include "tests/sim/swarm_node.h"

namespace weft::swarm {

class Swarm;

// Payload that every handler answers: {"n": number of the call, "node": who ran it}.
[[nodiscard]] std::shared_ptr<Service> make_service(Swarm& swarm, SwarmNode& member, const ServicePlan& plan);

// Lets `member` do something now and then, from a seed of its own, while it lives and the swarm wants
// traffic.
void start_traffic(Swarm& swarm, SwarmNode& member);

// One call of `member`, kept in the journal.
struct CallPlan {
  std::string action;
  Value params = Value::object();
  std::optional<Duration> timeout;
  std::optional<int> retries;
  std::string node;
  bool has_fallback = false;
  bool tracked = true;
};
struct CallEnd {
  bool ok = false;
  Value result;
  std::string error;
};
Task<CallEnd> make_call(Swarm& swarm, SwarmNode& member, CallPlan plan);
void send_event(Swarm& swarm, SwarmNode& member, std::string_view name, bool broadcast,
                std::int64_t* number = nullptr);

}  // namespace weft::swarm
