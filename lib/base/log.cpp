#include "lib/base/log.h"

namespace weft {

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return "trace";
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
    case LogLevel::kFatal:
      return "fatal";
    case LogLevel::kOff:
      return "off";
  }
  return "off";
}

void Logger::write(LogLevel level, std::string_view text) const {
  sink_->write({.level = level, .module = module_, .node_id = node_id_, .text = text});
}

}  // namespace weft
