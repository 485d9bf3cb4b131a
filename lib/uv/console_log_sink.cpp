#include "lib/uv/console_log_sink.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>

#include <array>
#include <cctype>
#include <string>

namespace weft {

namespace {

constexpr std::array<std::string_view, 7> kLevelNames = {"TRACE", "DEBUG", "INFO ", "WARN ",
                                                         "ERROR", "FATAL", "OFF  "};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kFatal:
      return spdlog::level::critical;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

class LevelName final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string_view name = kLevelNames[static_cast<std::size_t>(message.level)];
    out.append(name.data(), name.data() + name.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelName>();
  }
};

std::unique_ptr<spdlog::formatter> make_formatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<LevelName>('L');
  formatter->set_pattern("[%Y-%m-%dT%H:%M:%S.%eZ] %^%L%$ %v");
  return formatter;
}

// Text may quote a peer: its control characters must not reach a terminal.
void append_printable(std::string& line, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
    line += is_control ? '?' : c;
  }
}

class ConsoleLogSink final : public LogSink {
 public:
  explicit ConsoleLogSink(const ConsoleLogOptions& options)
      : out_(options.colours ? spdlog::color_mode::always : spdlog::color_mode::never),
        err_(options.colours ? spdlog::color_mode::always : spdlog::color_mode::never),
        all_to_stderr_(options.all_to_stderr) {
    out_.set_formatter(make_formatter());
    err_.set_formatter(make_formatter());
  }

  void write(const LogRecord& record) override {
    std::string line;
    line.reserve(record.node_id.size() + record.module.size() + record.text.size() + 3);
    append_printable(line, record.node_id);
    if (!record.node_id.empty()) line += '/';
    for (const char c : record.module) line += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    line += ": ";
    append_printable(line, record.text);
    const spdlog::details::log_msg message(spdlog::string_view_t(), to_spdlog(record.level), line);
    if (all_to_stderr_ || record.level >= LogLevel::kWarn) {
      err_.log(message);
    } else {
      out_.log(message);
    }
  }

  void flush() override {
    out_.flush();
    err_.flush();
  }

 private:
  spdlog::sinks::ansicolor_stdout_sink_mt out_;
  spdlog::sinks::ansicolor_stderr_sink_mt err_;
  const bool all_to_stderr_;
};

}  // namespace

std::shared_ptr<LogSink> make_console_log_sink(const ConsoleLogOptions& options) {
  return std::make_shared<ConsoleLogSink>(options);
}

}  // namespace weft
