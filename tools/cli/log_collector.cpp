#include "tools/cli/log_collector.h"

#include <algorithm>

namespace weft::cli {

namespace {

constexpr std::size_t kWarningsMax = 5;

}  // namespace

void LogCollector::write(const LogRecord& record) {
  if (record.level >= shown_) next_->write(record);
  if (record.level < LogLevel::kWarn) return;
  const std::lock_guard lock(mutex_);
  if (std::find(warnings_.begin(), warnings_.end(), record.text) != warnings_.end()) return;
  if (warnings_.size() == kWarningsMax) warnings_.erase(warnings_.begin());
  warnings_.emplace_back(record.text);
}

std::vector<std::string> LogCollector::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

}  // namespace weft::cli
