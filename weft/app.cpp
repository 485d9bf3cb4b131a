#include "weft/app.h"

#include <exception>
#include <future>
#include <optional>

#include "broker/node_id.h"
#include "lib/uv/console_log_sink.h"
#include "lib/uv/uv_runtime.h"

namespace weft {

struct App::Parts {
  explicit Parts(AppOptions given) : options(std::move(given)), runtime({.log = options.log}) {}

  AppOptions options;
  UvRuntime runtime;
  std::unique_ptr<Broker> broker;  // Destroyed before the runtime.
  std::thread thread;
  bool failed_for_good = false;  // on_fatal was called.
  std::function<void()> quit;    // Ends run(), while it runs.
};

namespace {

// Runs `work` to its end as a coroutine that belongs to nobody, then calls `done` with what it threw.
Detached run_detached(std::function<Task<void>()> work, std::function<void(std::exception_ptr)> done) {
  std::exception_ptr failure;
  try {
    Task<void> task = work();
    co_await std::move(task);
  } catch (...) {
    failure = std::current_exception();
  }
  done(failure);
}

}  // namespace

App::App(AppOptions given) : parts_(std::make_unique<Parts>(std::move(given))) {
  AppOptions& options = parts_->options;
  BrokerOptions broker = options.broker;
  if (!options.node_id.empty()) broker.node_id = options.node_id;
  if (!options.name_space.empty()) broker.name_space = options.name_space;
  if (!options.metadata.is_null()) broker.metadata = options.metadata;
  if (options.log_level != LogLevel::kInfo) broker.log_level = options.log_level;
  broker.gossip.use_hostname = broker.gossip.use_hostname && options.tcp.use_hostname;
  broker.on_fatal = [this, user = broker.on_fatal](Broker& failed, const Error& error) {
    parts_->failed_for_good = true;
    if (user) user(failed, error);
    if (parts_->quit) parts_->quit();
  };

  const Runtime world = parts_->runtime.services();
  if (broker.node_id.empty())  // The transporter's log names it, too.
    broker.node_id = default_node_id(world.network.hostname(), world.system.process_id());
  const Logger log(world.log, broker.node_id, "transporter", broker.log_level);
  if (options.memory == nullptr) options.memory = std::make_shared<MemoryBuses>();
  auto transporter = make_transporter({.url = options.transporter, .tcp = options.tcp, .nats = options.nats},
                                      world, log, options.memory.get());
  if (!transporter) transporter.error().raise();
  parts_->broker = std::make_unique<Broker>(world, std::move(broker), std::move(*transporter));
}

App::~App() {
  stop();
}

Broker& App::broker() {
  return *parts_->broker;
}

void App::start() {
  if (parts_->thread.joinable())
    Error(ErrorClass::kBase, "The node runs already.", "ALREADY_STARTED").raise();
  std::promise<void> started;
  bool failed = false;  // Written before the promise is kept.
  parts_->thread = std::thread([this, &started, &failed] {
    parts_->runtime.loop().post([this, &started, &failed] {
      run_detached([this] { return parts_->broker->start(); },
                   [&started, &failed](const std::exception_ptr& failure) {
                     failed = failure != nullptr;
                     if (failure) {
                       started.set_exception(failure);
                     } else {
                       started.set_value();
                     }
                   });
    });
    parts_->runtime.run();
  });
  auto outcome = started.get_future();
  outcome.wait();
  if (!failed) return outcome.get();
  parts_->runtime.stop();
  parts_->thread.join();
  parts_->runtime.take_over();
  outcome.get();
}

void App::stop() {
  if (!parts_->thread.joinable()) return;
  parts_->runtime.loop().post([this] {
    run_detached([this] { return parts_->broker->stop(); },
                 [this](const std::exception_ptr&) { parts_->runtime.stop(); });
  });
  parts_->thread.join();
  parts_->runtime.take_over();  // What it made is destroyed here.
}

void App::run_on_loop(std::function<Task<void>(Broker&)> work) {
  std::promise<void> ended;
  parts_->runtime.loop().post([this, &work, &ended] {
    run_detached([this, &work] { return work(*parts_->broker); },
                 [&ended](const std::exception_ptr& failure) {
                   if (failure) {
                     ended.set_exception(failure);
                   } else {
                     ended.set_value();
                   }
                 });
  });
  ended.get_future().get();
}

int App::run() {
  bool start_failed = false;
  bool stopping = false;
  const auto stop_broker = [this, &stopping] {
    if (std::exchange(stopping, true)) return;
    run_detached([this] { return parts_->broker->stop(); },
                 [this](const std::exception_ptr&) { parts_->runtime.stop(); });
  };
  parts_->quit = stop_broker;
  parts_->runtime.loop().post([&] {
    run_detached([this] { return parts_->broker->start(); },
                 [&](const std::exception_ptr& failure) {
                   if (!failure || stopping) return;
                   start_failed = true;
                   parts_->broker->log().fatal("The node did not start: ",
                                               Error::from_exception(failure).to_string());
                   parts_->runtime.stop();
                 });
  });
  const int code = parts_->runtime.run_until_signal([&](int) { stop_broker(); });
  parts_->quit = nullptr;
  return start_failed || parts_->failed_for_good ? 1 : code;
}

int App::run(std::function<Task<int>(Broker&)> program) {
  std::optional<int> code;
  std::exception_ptr failure;
  parts_->runtime.loop().post([&] {
    run_detached(
        [&]() -> Task<void> {
          co_await parts_->broker->start();
          try {
            code = co_await program(*parts_->broker);
          } catch (...) {
            failure = std::current_exception();
          }
          co_await parts_->broker->stop();
        },
        [&](const std::exception_ptr& start_failure) {
          if (start_failure) failure = start_failure;
          parts_->runtime.stop();
        });
  });
  parts_->runtime.run();
  if (failure) std::rethrow_exception(failure);
  return *code;
}

}  // namespace weft
