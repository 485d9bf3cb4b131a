#include "lib/uv/uv_runtime.h"

#include <uv.h>

#include <array>
#include <csignal>
#include <utility>

#include "lib/base/assert.h"
#include "lib/uv/console_log_sink.h"
#include "lib/uv/system_probe.h"
#include "lib/uv/uv_loop.h"
#include "lib/uv/uv_network.h"
#include "lib/uv/uv_poller.h"

namespace weft {

namespace {

std::uint64_t seed_from_system() {
  std::uint64_t seed = 0;
  const int status = uv_random(nullptr, nullptr, &seed, sizeof seed, 0, nullptr);
  WEFT_ASSERT(status == 0);
  return seed;
}

struct SignalWatch {
  UvLoop& loop;
  UniqueFunction<void(int)> on_signal;
  bool seen = false;
  int exit_code = 0;

  void receive(int signal) {
    if (std::exchange(seen, true)) {
      exit_code = 128 + signal;
      loop.stop();
    } else if (on_signal) {
      on_signal(signal);
    } else {
      loop.stop();
    }
  }
};

}  // namespace

struct UvRuntime::Parts {
  explicit Parts(UvRuntimeOptions options)
      : network(loop),
        poller(loop),
        random(seed_from_system()),
        log(options.log != nullptr ? std::move(options.log) : make_console_log_sink()) {}

  UvLoop loop;
  UvNetwork network;
  UvPoller poller;
  SeededRandom random;
  UvSystemProbe system;
  std::shared_ptr<LogSink> log;
};

UvRuntime::UvRuntime(UvRuntimeOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {}
UvRuntime::~UvRuntime() = default;

Runtime UvRuntime::services() {
  return {.loop = parts_->loop,
          .network = parts_->network,
          .random = parts_->random,
          .system = parts_->system,
          .log = parts_->log,
          .poller = &parts_->poller};
}

EventLoop& UvRuntime::loop() {
  return parts_->loop;
}

void UvRuntime::run() {
  parts_->loop.run();
}

void UvRuntime::stop() {
  parts_->loop.stop();
}

void UvRuntime::take_over() {
  parts_->loop.take_over();
}

int UvRuntime::run_until_signal(UniqueFunction<void(int signal)> on_signal) {
  SignalWatch watch{.loop = parts_->loop, .on_signal = std::move(on_signal)};
  std::array<HandlePtr<uv_signal_t>, 2> handles;
  constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    auto* handle = new uv_signal_t;
    const int status = uv_signal_init(parts_->loop.uv(), handle);
    WEFT_ASSERT(status == 0);
    handles[i].reset(handle);
    handle->data = &watch;
    uv_signal_start(
        handle, [](uv_signal_t* self, int signal) { static_cast<SignalWatch*>(self->data)->receive(signal); },
        kSignals[i]);
  }
  run();
  return watch.exit_code;
}

}  // namespace weft
