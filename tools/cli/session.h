#pragma once

#include <functional>
#include <memory>

#include "lib/loop/task.h"
#include "tools/cli/command_line.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/log_collector.h"
#include "tools/cli/mesh.h"
#include "tools/cli/output.h"

namespace weft::cli {

// What a command works with, on the loop's thread.
struct Session {
  const CommandLine& line;
  Output& output;
  Mesh& mesh;
  const LogCollector& log;
};
using Work = std::function<Task<int>(Session&)>;

// Joins the mesh as an observer, runs `work`, and leaves again. Gives `work`'s exit code, or that of the
// failure to join, which is told to `output`. An interrupt leaves the mesh in good order and ends the
// process.
[[nodiscard]] int run_in_mesh(const CommandLine& line, Output& output, Interrupts& interrupts,
                              const Work& work);

// Tells that nobody else is there, and what to look at. Gives the exit code.
[[nodiscard]] int tell_nobody(Session& session);

}  // namespace weft::cli
