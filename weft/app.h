#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "broker/broker.h"
#include "lib/base/log.h"
#include "transporters/factory.h"

namespace weft {

// Settings of an App: the usual ones in front, everything else in `broker`, `tcp` and `nats`.
struct AppOptions {
  std::string node_id;      // Unique in the namespace. Empty: host name and process id.
  std::string name_space;   // Only nodes of one namespace see each other.
  std::string transporter;  // "TCP", "tcp://…", "nats://…", "memory://…"; empty: a node on its own.
  Value metadata;           // Shown to every node.
  LogLevel log_level = LogLevel::kInfo;
  std::shared_ptr<LogSink> log;  // Null: lines on the console.
  BrokerOptions broker;          // The four above go before what stands here.
  TcpOptions tcp;
  NatsOptions nats;
  std::shared_ptr<MemoryBuses> memory;  // Where nodes of this process meet over memory://.
};

// A broker with the real world around it: its own loop, sockets and log.
//
// Run it on this thread (run) or on one of its own (start … stop). Nothing is caught or exited behind your
// back: bad options are a BrokerOptionsError, and signals are handled by run() alone, when it is asked to.
// Thread: the members here are for the thread that owns the node; the broker's own members are for the
// loop's.
class App {
 public:
  // Throws BrokerOptionsError.
  explicit App(AppOptions options = {});
  // Stops it first.
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // Before start() or run().
  Service& add_service(std::shared_ptr<Service> service) { return broker().add_service(std::move(service)); }
  template <typename S, typename... Args>
  S& add(Args&&... args) {
    return broker().add<S>(std::forward<Args>(args)...);
  }

  [[nodiscard]] Broker& broker();

  // Starts the loop on a thread of its own and the broker on it; returns when the broker has started. Throws
  // what Broker::start() throws.
  void start();
  // Stops the broker gracefully and ends the thread. Does nothing when it is not running.
  void stop();

  // Any other thread, while it runs: waits for the result; throws the call's error.
  template <typename T = Value>
  T call(std::string_view action, Params params = {}, const CallOptions& options = {}) {
    return broker().call_blocking<T>(action, std::move(params), options);
  }
  // Runs `work(broker)` on the loop and waits for its end; throws what it throws.
  void run_on_loop(std::function<Task<void>(Broker&)> work);

  // Runs everything on this thread: starts, serves until SIGINT or SIGTERM, stops gracefully. A second signal
  // stops without waiting. Gives an exit code: 0, or 1 when the start failed (with the reason in the log).
  int run();
  // Runs a program on this thread: starts, awaits `program(broker)`, stops. Gives what the program gives;
  // throws what it throws.
  int run(std::function<Task<int>(Broker&)> program);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weft
