#include "broker/dispatch/dispatcher.h"

#include <exception>

#include "lib/base/assert.h"

namespace weft {

Dispatcher::~Dispatcher() {
  *alive_ = false;
  abandon_all();
}

void Dispatcher::invoke_into(Handler& handler, Context& context, HandlerOutcome& outcome) {
  try {
    handler.invoke(context, outcome);
  } catch (...) {
    outcome.result = Error::from_exception(std::current_exception());
  }
}

Result<Payload> Dispatcher::invoke(Handler& handler, Context& context) {
  HandlerOutcome outcome;
  invoke_into(handler, context, outcome);
  WEFT_ASSERT(!outcome.task);
  return std::move(outcome.result);
}

std::unique_ptr<Run> Dispatcher::make_run(const Service* service) {
  auto run = std::make_unique<Run>(broker_, service);
  run->dispatcher = this;
  run->number = ++last_number_;
  return run;
}

void Dispatcher::start(std::unique_ptr<Run> owned, bool blocking) {
  Run& run = *owned;
  runs_.emplace(run.number, std::move(owned));
  if (run.tracked) ++active_;
  if (blocking) {
    // A worker must find them made: making an id takes the loop thread's dice.
    (void)run.context.id();
    (void)run.context.request_id();
    // The worker owns the run while it works on it: abandon_all() must not free it under its feet.
    struct Job {
      std::shared_ptr<bool> alive;
      std::unique_ptr<Run> run;
    };
    auto job = std::make_shared<Job>(Job{alive_, std::move(runs_[run.number])});
    loop_.run_blocking([job] { invoke_into(*job->run->handler, job->run->context, job->run->outcome); },
                       [this, job] {
                         if (!*job->alive) return;
                         Run& ended = *job->run;
                         const auto slot = runs_.find(ended.number);
                         if (slot == runs_.end()) return;  // Abandoned meanwhile.
                         slot->second = std::move(job->run);
                         if (ended.outcome.task) {
                           ended.outcome.task.start(&Dispatcher::on_task_end, &ended);
                         } else {
                           finish(ended, std::move(ended.outcome.result));
                         }
                       });
    return;
  }
  invoke_into(*run.handler, run.context, run.outcome);
  if (run.outcome.task) {
    run.outcome.task.start(&Dispatcher::on_task_end, &run);
  } else {
    finish(run, std::move(run.outcome.result));
  }
}

void Dispatcher::on_task_end(void* context) {
  Run& run = *static_cast<Run*>(context);
  Result<Payload> result = Payload();
  try {
    result = run.outcome.task.take();
  } catch (...) {
    result = Error::from_exception(std::current_exception());
  }
  run.dispatcher->finish(run, std::move(result));
}

void Dispatcher::finish(Run& run, Result<Payload> result) {
  const auto slot = runs_.find(run.number);
  WEFT_ASSERT(slot != runs_.end());
  // Out of the table first: `done` may stop the broker, or make calls that end in line.
  const std::unique_ptr<Run> owned = std::move(slot->second);
  runs_.erase(slot);
  if (run.tracked) --active_;
  if (auto done = std::move(run.done)) done(run, std::move(result));
  if (active_ == 0 && when_idle_) {
    auto callback = std::move(when_idle_);
    callback();
  }
}

void Dispatcher::when_idle(UniqueFunction<void()> callback) {
  when_idle_ = std::move(callback);
  if (active_ == 0 && when_idle_) {
    auto now = std::move(when_idle_);
    now();
  }
}

void Dispatcher::abandon_all() {
  when_idle_.reset();
  active_ = 0;
  const auto abandoned =
      std::move(runs_);  // Frames being destroyed may drop calls, which never come back here.
  runs_.clear();
}

}  // namespace weft
