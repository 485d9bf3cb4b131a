#pragma once

#include <functional>
#include <string>

namespace weft::runner {

// Runs `count` worker processes of this program, numbered from 1, each by `work(number)` in a child. SIGINT,
// SIGTERM, SIGHUP and SIGQUIT to the parent are passed on as SIGTERM; a second one kills. A worker that dies
// by itself with a failure ends the others, and its code is the parent's; after a stop that was asked for the
// parent gives 0.
int run_instances(int count, const std::function<int(int number)>& work);

}  // namespace weft::runner
