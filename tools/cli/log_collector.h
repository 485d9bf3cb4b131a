#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/log.h"

namespace weft::cli {

// Passes on what is to be seen, and keeps the latest warnings: they explain why nobody was found. Thread:
// any.
class LogCollector final : public LogSink {
 public:
  // Lines of `shown` and above go on to `next`.
  LogCollector(std::shared_ptr<LogSink> next, LogLevel shown) : next_(std::move(next)), shown_(shown) {}

  void write(const LogRecord& record) override;
  void flush() override { next_->flush(); }
  // Different ones, oldest first.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  const std::shared_ptr<LogSink> next_;
  const LogLevel shown_;
  mutable std::mutex mutex_;
  std::vector<std::string> warnings_;
};

}  // namespace weft::cli
