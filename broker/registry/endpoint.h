#pragma once

#include <cstdint>

#include "broker/registry/node.h"

namespace weft {

class Strategy;
struct Endpoint;

// What the endpoints of one action have in common.
struct EndpointGroup {
  Strategy* strategy = nullptr;  // Hears how attempts end.
  std::uint32_t in_flight = 0;   // The sum over its endpoints.
};

// One attempt of a call while an endpoint owes it an answer: what load is counted by.
//
// Lives in the record of its call, so that counting allocates nothing. Either may go first, the attempt or
// the endpoint: it lets go of the other.
class Flight {
 public:
  Flight() = default;
  ~Flight() { leave(); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // Of an attempt that is not under way. `now` never goes back from one begin() to the next.
  void begin(Endpoint& endpoint, Instant now);
  // Is counted no longer. land() in broker/strategy/strategy.h tells the strategy as well.
  void leave();
  // Null when none is under way or the endpoint is gone.
  [[nodiscard]] Endpoint* endpoint() const { return endpoint_; }
  [[nodiscard]] Instant begun() const { return begun_; }

 private:
  friend struct Endpoint;
  Endpoint* endpoint_ = nullptr;
  Flight* earlier_ = nullptr;  // Of the same endpoint.
  Flight* later_ = nullptr;
  Instant begun_{};
};

// A node that offers an action (or subscribes to an event in a group): what a strategy chooses from.
//
// Lives in an endpoint list of the registry, at a fixed address while it is there.
struct Endpoint {
  Endpoint() = default;
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Attempts of this node's calls that wait for its answer.
  [[nodiscard]] std::uint32_t in_flight() const { return in_flight_; }
  // How long the oldest of them has been waiting; zero when there is none.
  [[nodiscard]] Duration oldest_age(Instant now) const {
    return oldest_ == nullptr ? Duration::zero() : now - oldest_->begun();
  }

  Node* node = nullptr;
  bool local = false;
  bool available = true;           // False while something (a breaker) has taken it out.
  std::uint64_t generation = 0;    // Of the registration that last named it.
  EndpointGroup* group = nullptr;  // Null for events: nobody answers them.

  // For the strategy alone: a smoothed latency, and when it was that.
  double latency_ms = -1;  // Negative: nothing is known.
  Instant latency_at{};

 private:
  friend class Flight;
  std::uint32_t in_flight_ = 0;
  Flight* oldest_ = nullptr;
  Flight* newest_ = nullptr;
};

}  // namespace weft
