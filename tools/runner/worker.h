#pragma once

#include <string>
#include <vector>

#include "tools/runner/option_table.h"

namespace weft::runner {

// Runs one node with these service modules until SIGINT or SIGTERM. Gives the process's exit code.
int run_worker(Settings settings, const std::vector<std::string>& modules);

}  // namespace weft::runner
