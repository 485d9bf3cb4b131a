#include "broker/dispatch/dispatcher.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "broker/context_access.h"
#include "broker/service.h"
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
  run.blocking = blocking;
  runs_.emplace(run.number, std::move(owned));
  if (run.tracked) ++active_;
  if (blocking) {
    // A worker must find them made: making an id takes the loop thread's dice.
    (void)run.context.id();
    (void)run.context.request_id();
    (void)run.context.stop_token();
  }
  if (run.queue == nullptr || enter(run)) begin(run);
}

bool Dispatcher::enter(Run& run) {
  std::uint64_t number = run.number;
  const std::shared_ptr<RunQueue> queue = run.queue;
  auto admission = queue->enter(number, run.context.deadline());
  if (admission == RunQueue::Admission::kFull) {
    const Instant now = loop_.now();
    while (const auto expired = queue->take_expired(now)) {
      if (const auto late = runs_.find(*expired); late != runs_.end())
        finish(*late->second, too_late(*late->second));
    }
    if (!runs_.contains(number)) return false;  // What has ended may have stopped everything.
    admission = queue->enter(number, run.context.deadline());
  }
  run.entered = admission == RunQueue::Admission::kRun;
  if (admission == RunQueue::Admission::kFull) finish(run, refusal(run));
  return admission == RunQueue::Admission::kRun;
}

void Dispatcher::leave(const std::shared_ptr<RunQueue>& queue) {
  while (const auto next = queue->leave(loop_.now())) {
    const auto slot = runs_.find(next->item);
    if (slot == runs_.end()) continue;
    Run& run = *slot->second;
    if (next->expired || run.unwanted) {
      finish(run, too_late(run));
      continue;
    }
    run.entered = true;
    return begin(run);
  }
}

Error Dispatcher::too_late(Run& run) const {
  return Error::request_timeout(run.context.action(), node_id_);
}

Error Dispatcher::refusal(Run& run) const {
  const RunQueue& queue = *run.queue;
  if (!run.context.event().empty()) {
    const std::string service = run.context.service() != nullptr ? run.context.service()->full_name() : "";
    return Error(ErrorClass::kQueueIsFull,
                 "The queue of event '" + std::string(run.context.event()) + "' in service '" + service +
                     "' on '" + node_id_ + "' is full.",
                 {},
                 Value{{"event", run.context.event()},
                       {"service", service},
                       {"nodeID", node_id_},
                       {"size", queue.waiting()},
                       {"limit", queue.policy().queue_max}});
  }
  return Error::queue_is_full(run.context.action(), node_id_, queue.waiting(), queue.policy().queue_max);
}

void Dispatcher::begin(Run& run) {
  if (run.blocking) return begin_blocking(run);
  invoke_into(*run.handler, run.context, run.outcome);
  if (run.outcome.task) {
    run.outcome.task.start(&Dispatcher::on_task_end, &run);
  } else {
    finish(run, std::move(run.outcome.result));
  }
}

void Dispatcher::begin_blocking(Run& run) {
  // The worker owns the run while it works on it: abandon_all() must not free it under its feet.
  struct Job {
    std::shared_ptr<bool> alive;
    std::unique_ptr<Run> run;
  };
  at_work_.emplace(run.number, &run);
  auto job = std::make_shared<Job>(Job{alive_, std::move(runs_[run.number])});
  loop_.run_blocking([job] { invoke_into(*job->run->handler, job->run->context, job->run->outcome); },
                     [this, job] {
                       if (!*job->alive) return;
                       Run& ended = *job->run;
                       at_work_.erase(ended.number);
                       const auto slot = runs_.find(ended.number);
                       if (slot == runs_.end()) return;  // Abandoned meanwhile.
                       slot->second = std::move(job->run);
                       if (ended.outcome.task) {
                         ended.outcome.task.start(&Dispatcher::on_task_end, &ended);
                       } else {
                         finish(ended, std::move(ended.outcome.result));
                       }
                     });
}

Context* Dispatcher::context_of(std::uint64_t number) {
  const auto found = runs_.find(number);
  return found == runs_.end() || found->second == nullptr ? nullptr : &found->second->context;
}

Run& Dispatcher::run_of(std::uint64_t number) const {
  const auto& run = runs_.at(number);
  return run != nullptr ? *run : *at_work_.at(number);
}

void Dispatcher::request_stop(std::uint64_t number) {
  if (!runs_.contains(number)) return;
  Run& run = run_of(number);
  if (!at_work_.contains(number)) run.unwanted = true;
  ContextAccess(run.context).request_stop();
}

std::vector<std::uint64_t> Dispatcher::in_order() const {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(runs_.size());
  // In whatever order: they are sorted then.
  for (const auto& [number, run] : runs_) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void Dispatcher::request_stop_of(std::string_view node) {
  const std::shared_ptr<bool> alive = alive_;
  for (const std::uint64_t number : in_order()) {  // Stopping one may end others.
    if (!*alive) return;
    if (!runs_.contains(number)) continue;
    const Context& context = run_of(number).context;
    if (node.empty() || (context.node_id() == node && !context.action().empty())) request_stop(number);
  }
}

std::string Dispatcher::describe() const {
  constexpr std::size_t kNamed = 5;
  std::string text;
  std::size_t named = 0;
  for (const std::uint64_t number : in_order()) {
    if (named++ >= kNamed) continue;
    const Context& context = run_of(number).context;
    text += named == 1 ? "" : ", ";
    text += context.action().empty() ? context.event() : context.action();
  }
  if (named > kNamed) text += " and " + std::to_string(named - kNamed) + " more";
  return text;
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
  if (run.entered) {
    // The next one begins in a turn of its own: handlers that end at once must not pile up on the stack.
    if (run.queue->waiting() == 0) {
      (void)run.queue->leave(loop_.now());
    } else {
      loop_.defer([this, queue = run.queue, alive = alive_] {
        if (*alive) leave(queue);
      });
    }
  }
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
  at_work_.clear();
}

}  // namespace weft
