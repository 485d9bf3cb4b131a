#pragma once

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

namespace weft {

enum class LogLevel : std::uint8_t { kTrace, kDebug, kInfo, kWarn, kError, kFatal, kOff };

[[nodiscard]] std::string_view to_string(LogLevel level);

// One line on its way out. Views are valid during the call.
struct LogRecord {
  LogLevel level;
  std::string_view module;  // "broker", "transit", "registry", "greeter" …
  std::string_view node_id;
  std::string_view text;
};

// Where lines go. Called from any thread; an implementation locks if it must.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(const LogRecord& record) = 0;
  virtual void flush() {}
};

// A named front of a sink. Copied freely; the level check is inline, so a line that is off costs a compare
// and its arguments are not formatted.
class Logger {
 public:
  Logger() = default;  // Silent.
  Logger(std::shared_ptr<LogSink> sink, std::string node_id, std::string module, LogLevel level)
      : sink_(std::move(sink)), node_id_(std::move(node_id)), module_(std::move(module)), level_(level) {}

  [[nodiscard]] Logger with_module(std::string module) const {
    return {sink_, node_id_, std::move(module), level_};
  }
  [[nodiscard]] bool enabled(LogLevel level) const { return level >= level_ && sink_ != nullptr; }
  [[nodiscard]] LogLevel level() const { return level_; }

  template <typename... Parts>
  void trace(const Parts&... parts) const {
    log(LogLevel::kTrace, parts...);
  }
  template <typename... Parts>
  void debug(const Parts&... parts) const {
    log(LogLevel::kDebug, parts...);
  }
  template <typename... Parts>
  void info(const Parts&... parts) const {
    log(LogLevel::kInfo, parts...);
  }
  template <typename... Parts>
  void warn(const Parts&... parts) const {
    log(LogLevel::kWarn, parts...);
  }
  template <typename... Parts>
  void error(const Parts&... parts) const {
    log(LogLevel::kError, parts...);
  }
  template <typename... Parts>
  void fatal(const Parts&... parts) const {
    log(LogLevel::kFatal, parts...);
  }

  // The parts are written one after another, as to a stream.
  template <typename... Parts>
  void log(LogLevel level, const Parts&... parts) const {
    if (!enabled(level)) return;
    std::ostringstream line;
    (line << ... << parts);
    write(level, line.str());
  }

 private:
  void write(LogLevel level, std::string_view text) const;

  std::shared_ptr<LogSink> sink_;
  std::string node_id_;
  std::string module_;
  LogLevel level_ = LogLevel::kOff;
};

}  // namespace weft
