#pragma once

#include <cstdint>

#include "broker/guards/outcome.h"
#include "broker/guards/policies.h"
#include "broker/guards/rolling_window.h"

namespace weft {

// The circuit breaker of one endpoint.
//
//   closed ── too many failures ──► open ── half_open_time ──► half open ── admit() ──► probing
//     ▲                              ▲                             ▲                     │ │ │
//     └───────────── success ────────┼─────────────────────────────┼─────────────────────┘ │ │
//                                    └───────────── failure ───────┼───────────────────────┘ │
//                                                                  └─ no outcome in half_open_time
//
// Half open admits one call and no other until that has ended. Outcomes of calls that were admitted before
// the last change of state say nothing about the endpoint as it is now, and are passed over.
//
// Pure: feed it with admissions, outcomes and time. Allocates nothing.
class CircuitBreaker {
 public:
  enum class State : std::uint8_t { kClosed, kOpen, kHalfOpen, kProbing };
  // Names one admission; 0 is that of a call that was made past a breaker that is open.
  using Ticket = std::uint32_t;

  explicit CircuitBreaker(const CircuitBreakerPolicy& policy) : policy_(policy), window_(policy.window) {}

  [[nodiscard]] State state() const { return state_; }
  // Whether the endpoint may be chosen.
  [[nodiscard]] bool admits() const { return state_ == State::kClosed || state_ == State::kHalfOpen; }

  // A call is made. In half open it is the probe: nobody else is admitted from here on. A call that has no
  // choice may be made in any state; open and probing it counts for nothing.
  [[nodiscard]] Ticket admit(Instant now);
  // It has ended. Each ticket once.
  void record(Ticket ticket, CallOutcome outcome, Instant now);
  // Does what is due by now; call it at next_tick().
  void tick(Instant now);
  [[nodiscard]] Instant next_tick() const { return due_; }

  // The calls that count, as of the last outcome.
  [[nodiscard]] std::uint32_t calls() const { return window_.calls(); }
  [[nodiscard]] std::uint32_t failures() const { return window_.failures(); }
  [[nodiscard]] double failure_rate() const { return window_.failure_rate(); }

 private:
  void enter(State state, Instant due);

  CircuitBreakerPolicy policy_;
  RollingWindow window_;
  State state_ = State::kClosed;
  Ticket epoch_ = 1;  // Changes with the state.
  Instant due_ = kNever;
};

}  // namespace weft
