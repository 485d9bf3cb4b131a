#include "lib/uv/uv_runtime.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "lib/uv/console_log_sink.h"
#include "lib/uv/system_probe.h"

namespace weft {
namespace {

using namespace std::chrono_literals;

// What is written to `fd` while it lives.
class Captured {
 public:
  explicit Captured(int fd) : fd_(fd), kept_(dup(fd)), file_(std::tmpfile()) {
    std::fflush(nullptr);
    dup2(fileno(file_), fd_);
  }
  ~Captured() {
    restore();
    std::fclose(file_);
  }
  std::string take() {
    restore();
    std::string text(static_cast<std::size_t>(lseek(fileno(file_), 0, SEEK_END)), '\0');
    lseek(fileno(file_), 0, SEEK_SET);
    const ssize_t count = read(fileno(file_), text.data(), text.size());
    text.resize(static_cast<std::size_t>(count < 0 ? 0 : count));
    return text;
  }

 private:
  void restore() {
    if (kept_ < 0) return;
    std::fflush(nullptr);
    dup2(kept_, fd_);
    close(kept_);
    kept_ = -1;
  }
  int fd_;
  int kept_;
  std::FILE* file_;
};

TEST_SUITE("uv runtime") {
  TEST_CASE("two runtimes draw different random numbers") {
    UvRuntime one;
    UvRuntime two;
    CHECK(one.services().random.next() != two.services().random.next());
  }

  TEST_CASE("run_until_signal ends at SIGTERM by itself") {
    UvRuntime runtime;
    runtime.loop().post([] { kill(getpid(), SIGTERM); });
    CHECK(runtime.run_until_signal() == 0);
  }

  TEST_CASE("the first signal asks, the second stops without waiting") {
    UvRuntime runtime;
    int asked = 0;
    runtime.loop().post([] { kill(getpid(), SIGINT); });
    const int code = runtime.run_until_signal([&](int signal) {
      CHECK(signal == SIGINT);
      ++asked;
      kill(getpid(), SIGTERM);
    });
    CHECK(asked == 1);
    CHECK(code == 128 + SIGTERM);
  }

  TEST_CASE("health tells of the machine and the process") {
    UvRuntime runtime;
    const Value health = runtime.services().system.health();
    CHECK(health["cpu"]["cores"].i64_or(0) >= 1);
    CHECK(health["cpu"]["utilization"].i64_or(-1) >= 0);
    CHECK(health["mem"]["total"].f64() > health["mem"]["free"].f64());
    const double percent = health["mem"]["percent"].f64();
    CHECK(percent == doctest::Approx(100 * health["mem"]["free"].f64() / health["mem"]["total"].f64()));
    CHECK(health["os"]["type"].str_or("") == "Linux");
    CHECK(health["os"]["platform"].str_or("") == "linux");
    CHECK(health["os"]["user"]["uid"].i64_or(-1) == static_cast<std::int64_t>(getuid()));
    CHECK(health["process"]["pid"].i64_or(0) == getpid());
    CHECK(health["process"]["memory"]["rss"].i64_or(0) > 100'000);
    CHECK(health["process"]["argv"].size() >= 1);
    CHECK(health["client"]["type"].str_or("") == "cpp");
    CHECK(runtime.services().system.process_id() == getpid());
  }

  TEST_CASE("the cpu is a percentage once some time has passed") {
    UvSystemProbe probe;
    int percent = probe.cpu_percent();
    while (percent < 0) percent = probe.cpu_percent();
    CHECK(percent <= 100);
  }

  TEST_CASE("the cpu line is read as user nice system idle iowait irq softirq steal") {
    const auto times = parse_cpu_times("cpu  10 1 20 100 9 2 3 4 50 60\ncpu0 1 2 3 4\n");
    REQUIRE(times.has_value());
    CHECK(times->busy == 40);
    CHECK(times->total == 149);
    CHECK_FALSE(parse_cpu_times("intr 5").has_value());
    CHECK_FALSE(parse_cpu_times("cpu  1 2").has_value());
    CHECK_FALSE(parse_cpu_times("").has_value());
  }
}

TEST_SUITE("console log") {
  TEST_CASE("a line has time, level, node, module and text") {
    Captured out(STDOUT_FILENO);
    const auto sink = make_console_log_sink();
    sink->write({.level = LogLevel::kInfo, .module = "broker", .node_id = "node-1", .text = "ready"});
    sink->write({.level = LogLevel::kWarn, .module = "x", .node_id = "n", .text = "not here"});
    sink->flush();
    const std::string text = out.take();
    CHECK(text.substr(26) == " INFO  node-1/BROKER: ready\n");
    CHECK(text.substr(0, 3) == "[20");
    CHECK(text.substr(24, 2) == "Z]");
  }

  TEST_CASE("warnings go to stderr, and everything does when asked") {
    for (const bool all : {false, true}) {
      Captured err(STDERR_FILENO);
      const auto sink = make_console_log_sink({.all_to_stderr = all});
      sink->write({.level = LogLevel::kWarn, .module = "m", .node_id = "", .text = "w"});
      if (all) sink->write({.level = LogLevel::kDebug, .module = "m", .node_id = "", .text = "d"});
      sink->flush();
      const std::string text = err.take();
      CHECK(text.find("WARN  M: w\n") != std::string::npos);
      CHECK((text.find("DEBUG M: d\n") != std::string::npos) == all);
    }
  }

  TEST_CASE("control characters of a text do not reach the terminal") {
    Captured out(STDOUT_FILENO);
    const auto sink = make_console_log_sink();
    sink->write({.level = LogLevel::kInfo, .module = "m", .node_id = "a\x1b", .text = "x\x1b[2Jy\r\tz"});
    sink->flush();
    CHECK(out.take().find("a?/M: x?[2Jy?\tz\n") != std::string::npos);
  }

  TEST_CASE("colours are there only when asked for") {
    Captured out(STDOUT_FILENO);
    const auto sink = make_console_log_sink({.colours = true});
    sink->write({.level = LogLevel::kInfo, .module = "m", .node_id = "n", .text = "t"});
    sink->flush();
    CHECK(out.take().find("\033[32mINFO \033[m n/M: t") != std::string::npos);
  }
}

}  // namespace
}  // namespace weft
