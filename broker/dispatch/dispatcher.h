#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "broker/context.h"
#include "broker/dispatch/local_action.h"
#include "broker/handler.h"
#include "lib/base/log.h"
#include "lib/base/unique_function.h"
#include "lib/loop/event_loop.h"

namespace weft {

// One run of a handler that does not end in line. Owned by the Dispatcher until it ends.
struct Run {
  using Done = UniqueFunction<void(Run&, Result<Payload>)>;

  Run(Broker& broker, const Service* service) : context(broker, service) {}

  Context context;
  std::shared_ptr<Handler> handler;  // Alive as long as its coroutine is.
  std::shared_ptr<const void> keep;  // The action or subscription, and through it the service.
  std::shared_ptr<RunQueue> queue;   // Null: it runs at once.
  HandlerOutcome outcome;
  Done done;  // Runs once.
  std::uint64_t number = 0;
  bool tracked = true;  // stop() waits for it.
  bool blocking = false;
  bool entered = false;   // Takes one of the places of `queue`.
  bool unwanted = false;  // Nobody waits for its result any more.
  class Dispatcher* dispatcher = nullptr;
};

// Runs handlers of this node's actions and events, and turns whatever they throw into an Error.
//
// Thread: loop thread only; blocking handlers run on the loop's worker pool.
class Dispatcher {
 public:
  // `node_id` is named in the errors of runs that are refused.
  Dispatcher(Broker& broker, EventLoop& loop, Logger log, std::string node_id = {})
      : broker_(broker), loop_(loop), log_(std::move(log)), node_id_(std::move(node_id)) {}
  ~Dispatcher();

  // A plain handler, in line.
  [[nodiscard]] static Result<Payload> invoke(Handler& handler, Context& context);

  // Makes a run for start(); fill in its context (and retain it), then start it.
  [[nodiscard]] std::unique_ptr<Run> make_run(const Service* service);
  // Runs it, or lets it wait for its turn; `run->done` is called once, perhaps before start() returns: with
  // what the handler gave, or QueueIsFullError, or RequestTimeoutError when its turn came too late.
  void start(std::unique_ptr<Run> run, bool blocking);

  // The context of a run under way, unless a worker has it; null when there is none.
  [[nodiscard]] Context* context_of(std::uint64_t number);
  // Tells the handler that nobody waits for it any more; a run that has not begun never does. No such run:
  // does nothing. May end the run.
  void request_stop(std::uint64_t number);
  // The same of every run that `node` waits for (empty: of all of them).
  void request_stop_of(std::string_view node);
  // What runs or waits, by name, for the log: "math.add, posts.find and 3 more".
  [[nodiscard]] std::string describe() const;

  // Runs under way that stop() waits for.
  [[nodiscard]] std::size_t active() const { return active_; }
  // All that run or wait, tracked or not.
  [[nodiscard]] std::size_t running() const { return runs_.size(); }
  // Runs once as soon as no tracked run is under way; at once if that is so now. Replaces an earlier one.
  void when_idle(UniqueFunction<void()> callback);
  // Destroys every run under way; their `done` is not called.
  void abandon_all();

 private:
  static void on_task_end(void* run);
  static void invoke_into(Handler& handler, Context& context, HandlerOutcome& outcome);
  [[nodiscard]] Run& run_of(std::uint64_t number) const;
  // The numbers of all runs, oldest first.
  [[nodiscard]] std::vector<std::uint64_t> in_order() const;
  void begin(Run& run);
  void begin_blocking(Run& run);
  // Whether `run` has a place, or waits for one; else it has been refused.
  [[nodiscard]] bool enter(Run& run);
  void leave(const std::shared_ptr<RunQueue>& queue);
  [[nodiscard]] Error too_late(Run& run) const;
  [[nodiscard]] Error refusal(Run& run) const;
  void finish(Run& run, Result<Payload> result);

  Broker& broker_;
  EventLoop& loop_;
  Logger log_;
  std::string node_id_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Run>> runs_;  // Null while a worker has it.
  std::unordered_map<std::uint64_t, Run*> at_work_;               // Those that a worker has.
  std::uint64_t last_number_ = 0;
  std::size_t active_ = 0;
  UniqueFunction<void()> when_idle_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // False for what comes back from a worker too late.
};

}  // namespace weft
