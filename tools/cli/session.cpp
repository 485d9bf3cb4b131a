#include "tools/cli/session.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "lib/uv/console_log_sink.h"
#include "tools/cli/exit_code.h"
#include "weft/app.h"

namespace weft::cli {

namespace {

using namespace std::chrono_literals;

std::string observer_id() {
  std::random_device entropy;
  std::array<char, 40> id{};
  std::snprintf(id.data(), id.size(), "cli-%ld-%06x", static_cast<long>(getpid()), entropy() & 0xffffffU);
  return id.data();
}

AppOptions app_options(const MeshOptions& mesh, std::shared_ptr<LogSink> log) {
  AppOptions options;
  options.node_id = observer_id();
  options.name_space = mesh.name_space;
  options.transporter = mesh.transporter;
  options.metadata = Value{{"observer", true}};
  options.log = std::move(log);
  options.tcp.udp_discovery = mesh.udp;
  options.tcp.udp_port = mesh.udp_port;
  if (!mesh.tcp_urls.empty()) options.tcp.urls = Value(mesh.tcp_urls);
  options.nats = mesh.nats;
  options.broker.serializer = mesh.serializer;
  options.broker.log_level = std::min(mesh.log_level, LogLevel::kWarn);
  // Nobody calls an observer: there is nothing to wait for when it leaves.
  options.broker.registry.stop_delay = Duration::zero();
  options.broker.tracking.enabled = false;
  return options;
}

std::string seconds(Duration duration) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%g s", std::chrono::duration<double>(duration).count());
  return text.data();
}

std::string where(const MeshOptions& mesh) {
  std::string text = "  transporter  " + mesh.transporter;
  const bool is_tcp = mesh.transporter.starts_with("TCP") || mesh.transporter.starts_with("tcp");
  if (is_tcp) {
    text += mesh.udp ? ", UDP discovery on port " + std::to_string(mesh.udp_port) : ", no UDP discovery";
    if (!mesh.tcp_urls.empty()) text += ", nodes " + mesh.tcp_urls;
  }
  text += "\n  namespace    " + (mesh.name_space.empty() ? "(none)" : mesh.name_space);
  text += "\n  serializer   " + mesh.serializer;
  return text;
}

std::string said(const LogCollector& log) {
  std::string text;
  for (const std::string& warning : log.warnings()) text += "\n  " + warning;
  return text.empty() ? text : "\nThe log says:" + text;
}

// Ends a start that takes too long: a transporter may try for ever.
Task<void> limit_start(Broker& broker, Duration timeout, bool& too_long) {
  co_await broker.sleep(timeout);
  if (broker.started()) co_return;
  too_long = true;
  co_await broker.stop();
}

Task<void> leave(Broker& broker, Output& output, int exit_code) {
  output.mute();
  co_await broker.stop();
  std::_Exit(exit_code);
}

int tell_not_joined(const MeshOptions& mesh, Output& output, const Error& error, const LogCollector& log) {
  output.failure(error, "The mesh could not be joined:\n" + where(mesh) + said(log));
  return kExitNoMesh;
}

}  // namespace

int run_in_mesh(const CommandLine& line, Output& output, Interrupts& interrupts, const Work& work) {
  const MeshOptions& options = line.mesh;
  const auto log =
      std::make_shared<LogCollector>(make_console_log_sink({.all_to_stderr = true}), options.log_level);
  std::optional<App> app;
  try {
    app.emplace(app_options(options, log));
  } catch (const Exception& error) {
    output.failure(error.error());
    return kExitUsage;
  }

  Broker& broker = app->broker();
  interrupts.on_interrupt([&](int exit_code) {
    broker.spawn([&broker, &output, exit_code] { return leave(broker, output, exit_code); });
  });
  bool too_long = false;
  Instant deadline = kNever;
  const Duration timeout = options.timeout;
  broker.spawn([&]() -> Task<void> {
    if (timeout == Duration::zero()) co_return;
    deadline = broker.now() + timeout;
    co_await limit_start(broker, timeout, too_long);
  });
  bool joined = false;
  int exit_code = kExitFailed;
  try {
    exit_code = app->run([&](Broker& started) -> Task<int> {
      joined = true;
      Mesh mesh(started, options, deadline);
      Session session{line, output, mesh, *log};
      const int code = co_await work(session);
      (void)output.flush();  // Nobody waits for the goodbye.
      co_return code;
    });
  } catch (...) {
    Error error = Error::from_exception(std::current_exception());
    if (too_long) {
      error = Error(ErrorClass::kBrokerDisconnected, "No connection within " + seconds(timeout) + ".");
    }
    if (joined) {
      output.failure(error);
    } else {
      exit_code = tell_not_joined(options, output, error, *log);
    }
  }
  interrupts.on_interrupt(nullptr);
  return exit_code;
}

int tell_nobody(Session& session) {
  const MeshOptions& mesh = session.line.mesh;
  const Duration waited = mesh.timeout == Duration::zero() ? mesh.wait : std::min(mesh.wait, mesh.timeout);
  std::string hint = "Looked for nodes with\n" + where(mesh) + said(session.log) +
                     "\nIs a node running with the same three?";
  if (mesh.transporter.starts_with("TCP") && mesh.tcp_urls.empty()) {
    hint += " Where UDP does not reach, name one: --tcp-urls HOST:PORT/NODE";
  }
  session.output.failure(Error(ErrorClass::kServiceNotFound,
                               "No other node was found within " + seconds(waited) + ".", "NOBODY"),
                         hint);
  return kExitNobody;
}

}  // namespace weft::cli
