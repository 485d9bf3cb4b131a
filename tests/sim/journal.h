#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/function_ref.h"
#include "lib/error/error.h"
#include "lib/time/clock.h"
#include "tests/sim/verdict.h"

namespace weft::swarm {

// One life of a node: from the start of its process to its end.
using LifeId = std::uint32_t;

struct CallFact {
  LifeId caller = 0;
  std::string action;
  std::string node;    // Called directly.
  Instant begun_at{};  // In the world's time; the rest is in the caller's.
  Instant begun_local{};
  Instant latest = kNever;        // It has ended by then.
  int runs_max = 1;               // How often its handler may run.
  bool answers_by_itself = true;  // Has no fallback.
  int runs = 0;
  int ends = 0;
  bool ok = false;
  Instant lost_its_node = kNever;  // A call that runs once at most: when its caller saw its node going.
};

struct EventFact {
  LifeId emitter = 0;
  std::string name;
  bool broadcast = false;
  Instant sent_at{};  // In the world's time.
  // Who ran it: for an emit "group pattern", for a broadcast the life and service too.
  std::map<std::string, int> runs;
};

// What has happened to calls and events, as one who sees all nodes at once knows it. Holds the laws that each
// of these happenings must obey.
class Journal {
 public:
  explicit Journal(SimWorld& world, Verdict& verdict) : world_(world), verdict_(verdict) {}

  [[nodiscard]] LifeId begin_life(std::string node);
  // After stop() has ended nothing of this life runs any more.
  void end_life(LifeId life) { lives_[life].over = true; }
  [[nodiscard]] bool is_over(LifeId life) const { return lives_[life].over; }
  [[nodiscard]] const std::string& name_of(LifeId life) const { return lives_[life].node; }

  // Numbers start at 1.
  [[nodiscard]] std::int64_t begin_call(CallFact fact);
  [[nodiscard]] CallFact* call(std::int64_t number);
  // A handler of `life` runs call `number`.
  void call_runs(std::int64_t number, LifeId life, std::string_view action);
  // `now` by the caller's clock; `lateness`: how long its process was held up.
  void call_ends(std::int64_t number, bool ok, std::string_view outcome, Instant now, Duration lateness);
  // Every call of `life` has ended.
  void check_ended(LifeId life, std::string_view when);
  // Every call of `life` that is due has ended. `lateness` tells how long its process was held up since.
  void check_due(LifeId life, Instant now, FunctionRef<Duration(Instant since)> lateness);
  // `life` has seen `node` going: what is in flight to it ends, at once or, when it only hangs, in some
  // seconds.
  void node_lost(LifeId life, std::string_view node);
  // It came back in time: what waits for it may go on.
  void node_back(LifeId life, std::string_view node);
  // Nothing is in flight to it that was so `limit` ago.
  void check_lost(LifeId life, std::string_view node, Duration limit);
  [[nodiscard]] std::size_t open_calls(LifeId life) const { return lives_[life].open; }

  [[nodiscard]] std::int64_t begin_event(EventFact fact);
  [[nodiscard]] const EventFact& event(std::int64_t number) const {
    return events_[static_cast<std::size_t>(number) - 1];
  }
  void event_runs(std::int64_t number, LifeId life, std::string_view service, std::string_view group,
                  std::string_view pattern);

  [[nodiscard]] std::size_t calls() const { return calls_.size(); }
  [[nodiscard]] std::size_t ok_calls() const { return ok_calls_; }
  [[nodiscard]] std::size_t runs() const { return runs_; }
  [[nodiscard]] std::size_t events() const { return events_.size(); }

 private:
  struct Life {
    std::string node;
    bool over = false;
    std::size_t open = 0;             // Calls that have not ended.
    std::vector<std::int64_t> calls;  // Those, and some that have.
  };
  [[nodiscard]] std::string text(std::int64_t number, const CallFact& fact) const;

  SimWorld& world_;
  Verdict& verdict_;
  std::vector<Life> lives_;
  std::deque<CallFact> calls_;
  std::deque<EventFact> events_;
  std::size_t ok_calls_ = 0;
  std::size_t runs_ = 0;
};

}  // namespace weft::swarm
