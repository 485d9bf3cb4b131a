#pragma once

#include <optional>

#include "lib/loop/task.h"
#include "lib/value/value.h"
#include "tools/cli/session.h"

namespace weft::cli {

// The commands, one file each. Each runs in the mesh and gives an exit code; what fails is told to the
// session's output.

// nodes, services, actions, events.
[[nodiscard]] Task<int> run_listing(Session& session);
[[nodiscard]] Task<int> run_call(Session& session, std::optional<Value> params);
// emit, broadcast.
[[nodiscard]] Task<int> run_event(Session& session, std::optional<Value> payload);
[[nodiscard]] Task<int> run_ping(Session& session);

}  // namespace weft::cli
