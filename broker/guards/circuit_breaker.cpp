#include "broker/guards/circuit_breaker.h"

namespace weft {

void CircuitBreaker::enter(State state, Instant due) {
  state_ = state;
  due_ = due;
  if (++epoch_ == 0) epoch_ = 1;
}

CircuitBreaker::Ticket CircuitBreaker::admit(Instant now) {
  if (state_ == State::kHalfOpen)
    enter(State::kProbing, now + policy_.half_open_time);
  else if (state_ != State::kClosed)
    return 0;
  return epoch_;
}

void CircuitBreaker::record(Ticket ticket, CallOutcome outcome, Instant now) {
  if (ticket != epoch_) return;
  if (state_ == State::kProbing) {
    if (outcome == CallOutcome::kUnknown) return enter(State::kHalfOpen, kNever);
    if (outcome != CallOutcome::kFailure) {
      window_.clear();
      return enter(State::kClosed, kNever);
    }
    window_.add(true, now);
    return enter(State::kOpen, now + policy_.half_open_time);
  }
  if (outcome == CallOutcome::kAnswered || outcome == CallOutcome::kUnknown) return;
  window_.add(outcome == CallOutcome::kFailure, now);
  if (window_.calls() < policy_.min_request_count || window_.failures() == 0) return;
  if (window_.failure_rate() >= policy_.threshold) enter(State::kOpen, now + policy_.half_open_time);
}

void CircuitBreaker::tick(Instant now) {
  if (now >= due_) enter(State::kHalfOpen, kNever);
}

}  // namespace weft
