#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <optional>

#include "lib/loop/event_loop.h"
#include "lib/loop/task.h"
#include "lib/uv/uv_runtime.h"

namespace weft::test {

// Runs a task to its end on a real loop and rethrows what it throws; fails when it takes longer than `limit`.
template <typename F>
void run_task(UvRuntime& world, F make_task, Duration limit = std::chrono::seconds(20)) {
  struct Outcome {
    UvRuntime& world;
    bool done = false;
  } outcome{world};
  Task<void> task;
  Timer watchdog;
  world.loop().post([&] {
    watchdog.set_after(world.loop(), limit, [&] { world.stop(); });
    task = make_task();
    task.start(
        [](void* context) {
          auto* ended = static_cast<Outcome*>(context);
          ended->done = true;
          ended->world.stop();
        },
        &outcome);
  });
  world.run();
  watchdog.cancel();
  REQUIRE_MESSAGE(outcome.done, "the task did not end in time");
  task.take();
}

}  // namespace weft::test
