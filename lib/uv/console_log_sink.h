#pragma once

#include <memory>

#include "lib/base/log.h"

namespace weft {

struct ConsoleLogOptions {
  bool colours = false;
  bool all_to_stderr = false;  // Else only warnings and worse; a program whose output is data sets it.
};

// Lines for people: "[2026-11-30T08:34:43.175Z] INFO  node-1/BROKER: text". Thread safe.
[[nodiscard]] std::shared_ptr<LogSink> make_console_log_sink(const ConsoleLogOptions& options = {});

}  // namespace weft
