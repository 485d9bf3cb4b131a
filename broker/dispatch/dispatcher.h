#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

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
  HandlerOutcome outcome;
  Done done;  // Runs once.
  std::uint64_t number = 0;
  bool tracked = true;  // stop() waits for it.
  class Dispatcher* dispatcher = nullptr;
};

// Runs handlers of this node's actions and events, and turns whatever they throw into an Error.
//
// Thread: loop thread only; blocking handlers run on the loop's worker pool.
class Dispatcher {
 public:
  Dispatcher(Broker& broker, EventLoop& loop, Logger log)
      : broker_(broker), loop_(loop), log_(std::move(log)) {}
  ~Dispatcher();

  // A plain handler, in line.
  [[nodiscard]] static Result<Payload> invoke(Handler& handler, Context& context);

  // Makes a run for start(); fill in its context (and retain it), then start it.
  [[nodiscard]] std::unique_ptr<Run> make_run(const Service* service);
  // Runs it; `run->done` is called once, perhaps before start() returns.
  void start(std::unique_ptr<Run> run, bool blocking);

  // Runs under way that stop() waits for.
  [[nodiscard]] std::size_t active() const { return active_; }
  // Runs once as soon as no tracked run is under way; at once if that is so now. Replaces an earlier one.
  void when_idle(UniqueFunction<void()> callback);
  // Destroys every run under way; their `done` is not called.
  void abandon_all();

 private:
  static void on_task_end(void* run);
  static void invoke_into(Handler& handler, Context& context, HandlerOutcome& outcome);
  void finish(Run& run, Result<Payload> result);

  Broker& broker_;
  EventLoop& loop_;
  Logger log_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Run>> runs_;
  std::uint64_t last_number_ = 0;
  std::size_t active_ = 0;
  UniqueFunction<void()> when_idle_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // False for what comes back from a worker too late.
};

}  // namespace weft
