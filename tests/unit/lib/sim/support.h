#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/sim/sim_runtime.h"

namespace weft {

// One end of a stream that keeps what it is told.
class RecordingEnd final : public Stream::Handler {
 public:
  RecordingEnd() = default;
  explicit RecordingEnd(std::unique_ptr<Stream> made) : stream(std::move(made)) {
    stream->set_handler(*this);
  }

  void on_data(BytesView bytes) override {
    text += bytes;
    ++reads;
  }
  void on_closed(const Error& reason) override { closed = std::string(reason.type()); }
  void on_writable() override { ++writable; }

  bool write(BytesView bytes) { return stream->write(bytes, {}); }

  std::unique_ptr<Stream> stream;
  std::string text;
  int reads = 0;
  int writable = 0;
  std::string closed;  // The reason's type; empty while open.
};

// Two hosts with a process each, and a stream from a to b's port 80.
struct Pair {
  explicit Pair(std::uint64_t seed = 1) : world(seed) {}

  void listen(const StreamOptions& options = {}) {
    auto made = process_b->network().listen(
        {"", 80}, options, [this](std::unique_ptr<Stream> stream) { server.emplace(std::move(stream)); });
    listener = std::move(*made);
  }
  void connect(const StreamOptions& options = {}) {
    client.emplace(process_a->network().connect({"b", 80}, options));
  }
  // Both ends stand.
  bool stand(const StreamOptions& options = {}) {
    listen(options);
    connect(options);
    return world.run_until([this] { return server.has_value(); }, std::chrono::seconds(60));
  }
  SimFabric::CutId cut_off() {
    SimHost* const from[] = {&a};
    SimHost* const to[] = {&b};
    return world.fabric().partition(from, to);
  }

  SimWorld world;
  SimHost& a = world.fabric().add_host("a");
  SimHost& b = world.fabric().add_host("b");
  std::optional<SimRuntime> process_a{std::in_place, world, a};
  std::optional<SimRuntime> process_b{std::in_place, world, b};
  std::unique_ptr<StreamListener> listener;
  std::optional<RecordingEnd> client;
  std::optional<RecordingEnd> server;
};

}  // namespace weft
