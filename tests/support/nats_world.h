#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lib/uv/uv_poller.h"
#include "tests/support/recording_listener.h"
#include "tests/support/uv_world.h"
#include "transporters/nats/nats_transporter.h"

namespace weft::test {

// A real loop, and what NATS transporters on it need.
struct NatsWorld : UvWorld {
  UvPoller poller{loop};
  SeededRandom random{1};
};

// A transporter and what it heard.
class NatsNode {
 public:
  NatsNode(NatsWorld& world, std::string id, NatsOptions options, std::string name_space = {})
      : world_(world), nats_(world.loop, world.poller, world.random, Logger(), std::move(options)) {
    listener.on_each_line = [&world] { world.wake(); };
    start({std::move(id), std::move(name_space)});
  }

  Transporter& operator*() { return nats_; }
  Transporter* operator->() { return &nats_; }

  void start(const Transporter::Identity& identity) {
    started.reset();
    nats_.start(identity, listener, [this](Result<> outcome) {
      started = std::move(outcome);
      world_.wake();
    });
  }
  [[nodiscard]] bool is_ready() const { return started.has_value() && started->ok(); }
  // Until start() is done.
  [[nodiscard]] bool await_ready() {
    return world_.await([&] { return started.has_value(); }) && started->ok();
  }
  // Until `line` was heard.
  [[nodiscard]] bool await(const std::string& line) {
    return world_.await([&] { return listener.has(line); });
  }
  // Stops; false when that does not succeed in time.
  [[nodiscard]] bool stop(Duration limit = std::chrono::seconds(2)) {
    std::optional<Result<>> stopped;
    nats_.stop([&](Result<> outcome) {
      stopped = std::move(outcome);
      world_.wake();
    });
    return world_.await([&] { return stopped.has_value(); }, limit) && stopped->ok();
  }

  RecordingListener listener;
  std::optional<Result<>> started;

 private:
  NatsWorld& world_;
  NatsTransporter nats_;
};

}  // namespace weft::test
