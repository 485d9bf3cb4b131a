#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/loop/signal.h"
#include "tests/support/worker_process.h"
#include "weft/weft.h"

namespace weft::chaos {

using test::WorkerProcess;

// Of waits that end by an event: longer than any machine needs.
inline constexpr Duration kPatience = std::chrono::seconds(30);

// What other nodes tell of each other: who went, who came back, as each of them saw it.
class Sightings {
 public:
  struct Entry {
    std::string by;
    std::string node;
    bool found;
    Instant at;
  };
  void note(Entry entry);
  [[nodiscard]] const std::vector<Entry>& all() const { return entries_; }
  [[nodiscard]] std::size_t count(std::string_view by, std::string_view node, bool found) const;
  void clear() { entries_.clear(); }
  // Until `by` has told it once more than `before` times.
  Task<void> await(Broker& broker, std::string by, std::string node, bool found, std::size_t before = 0);

 private:
  std::vector<Entry> entries_;
  Signal changed_;
};

// A client in this process, workers in others.
class Mesh {
 public:
  struct Options {
    std::string transporter;  // "TCP" or the URL of a NATS server.
    std::string tcp_host = "127.0.0.1";
    std::function<void(AppOptions&)> adapt;  // Of the client.
  };
  explicit Mesh(const std::string& transporter) : Mesh(Options{.transporter = transporter}) {}
  explicit Mesh(Options options);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // A weft-runner with the chaos module.
  [[nodiscard]] WorkerProcess worker(const std::string& id,
                                     const WorkerProcess::Environment& more = {}) const;
  // A Moleculer node with the chaos service, if has_moleculer().
  [[nodiscard]] WorkerProcess moleculer_worker(const std::string& id,
                                               const WorkerProcess::Environment& more = {}) const;
  [[nodiscard]] static bool has_moleculer();
  [[nodiscard]] WorkerProcess::Environment environment(const std::string& id) const;
  [[nodiscard]] std::int64_t client_port() const { return port_; }

  void run(std::function<Task<void>(Broker&)> work) { app_->run_on_loop(std::move(work)); }
  [[nodiscard]] Sightings& sightings() { return sightings_; }

 private:
  Options options_;
  Sightings sightings_;  // The client's own under its name. Loop thread.
  std::unique_ptr<App> app_;
  std::int64_t port_ = 0;
};

// Waits until exactly `count` nodes offer chaos.work to the client.
Task<void> workers_are(Broker& broker, std::size_t count);
// Waits, without holding up the loop, for the end of a process: its exit code, or 128 + its signal.
Task<int> exit_of(Broker& broker, WorkerProcess& process);
// Waits until `by`, by its own list, holds `node` for available.
Task<void> node_sees(Broker& broker, std::string by, std::string node);
// Waits until the client holds `node` for available, or not.
Task<void> node_is(Broker& broker, std::string node, bool available);

struct LoadOptions {
  std::string action = "chaos.work";
  std::int64_t ms = 5;
  double rate = 600;  // Calls a second, however long they take.
  int retries = 0;
  // Every so many calls one that takes `long_ms`; 0: none.
  int long_every = 0;
  std::int64_t long_ms = 300;
};

// A stream of calls at a steady rate, and what came of them. Loop thread only.
class Load {
 public:
  struct Failure {
    Error error;
    Instant begun;
    Instant ended;
  };
  Load(Broker& broker, LoadOptions options);

  // Lets `count` further calls end.
  Task<void> more(std::uint64_t count);
  // Makes no more calls and waits for those under way. Gives the calls per second that were made.
  Task<double> finish();

  [[nodiscard]] std::uint64_t ended() const { return ended_; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  [[nodiscard]] const std::vector<Failure>& failures() const { return failures_; }
  void forget_failures() { failures_.clear(); }
  // Answers by the node that gave them.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& served() const { return served_; }
  [[nodiscard]] Duration slowest() const { return slowest_; }
  void forget_slowest() { slowest_ = {}; }

 private:
  void pace();
  Task<void> one(std::int64_t ms);

  Broker& broker_;
  const LoadOptions options_;
  Instant began_;
  std::uint64_t made_ = 0;
  std::uint64_t ended_ = 0;
  std::size_t in_flight_ = 0;
  bool finished_ = false;
  std::vector<Failure> failures_;
  std::map<std::string, std::uint64_t> served_;
  Duration slowest_{};
  Timer timer_;
  Signal progress_;
};

// A path or name from the environment, which meson sets.
[[nodiscard]] std::string required(const char* name);

}  // namespace weft::chaos
