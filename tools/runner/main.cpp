#include <unistd.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/config.h"
#include "lib/uv/console_log_sink.h"
#include "tools/runner/config_file.h"
#include "tools/runner/environment.h"
#include "tools/runner/instances.h"
#include "tools/runner/service_selection.h"
#include "tools/runner/worker.h"

extern char** environ;

namespace {

using namespace weft;
using namespace weft::runner;

constexpr int kUsageCode = 2;

int fail(const Error& error) {
  std::fprintf(stderr, "weft-runner: %s\n", error.message().c_str());
  return 1;
}

void print_options() {
  std::printf("Options, for a configuration file or the environment:\n\n");
  for (const OptionSpec& spec : option_table()) {
    std::printf("  %-34.*s %-24.*s %.*s (%.*s)\n", static_cast<int>(spec.path.size()), spec.path.data(),
                static_cast<int>(spec.env.size()), spec.env.data(), static_cast<int>(spec.help.size()),
                spec.help.data(), static_cast<int>(spec.takes.size()), spec.takes.data());
  }
}

std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

bool wants_colours() {
  const auto is = [](const char* name, std::string_view value) {
    const char* set = std::getenv(name);
    return set != nullptr && set == value;
  };
  const char* declined = std::getenv("NO_COLOR");
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  return terminal && !is("TERM", "dumb") && (declined == nullptr || *declined == '\0');
}

// File over defaults, environment over file, flags over both.
Result<Settings> gather(const std::string& config, int instances, bool silent) {
  Settings settings;
  auto file = find_config_file(config);
  if (!file) return file.error();
  if (*file) {
    auto tree = read_config_file(**file);
    if (!tree) return tree.error();
    if (auto applied = apply_config(settings, *tree, **file); !applied) return applied.error();
  }
  const auto warnings = apply_environment(settings, environment());
  if (!warnings) return warnings.error();
  for (const std::string& warning : *warnings) std::fprintf(stderr, "weft-runner: %s\n", warning.c_str());
  if (instances > 0) settings.instances = instances;
  if (silent) settings.app.log_level = LogLevel::kOff;
  settings.app.log = make_console_log_sink({.colours = wants_colours()});
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // Who reads our log may go; we stay. Inherited by the instances.
  CLI::App program("Runs service modules as a node of the mesh.", "weft-runner");
  std::vector<std::string> arguments;
  std::string config;
  std::string mask = "**/*.so";
  int instances = 0;
  bool silent = false;
  bool list_options = false;
  program.add_option("services", arguments,
                     "Service modules: files, folders, patterns; \"!pattern\" leaves out");
  program.add_option("-c,--config", config,
                     "Configuration file (.toml or .json); default weft.config.toml or .json here");
  program.add_option("-i,--instances", instances, "Worker processes, numbered node ids")
      ->check(CLI::Range(1, 256));
  program.add_option("-m,--mask", mask, "What is loaded from folders")->capture_default_str();
  program.add_flag("-s,--silent", silent, "Log nothing");
  program.add_flag("--help-options", list_options, "List every option and its environment variable");
  program.set_version_flag("-v,--version", std::string("weft ") + WEFT_VERSION);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& told) {
    return program.exit(told) == 0 ? 0 : kUsageCode;
  }
  if (list_options) {
    print_options();
    return 0;
  }

  auto settings = gather(config, instances, silent);
  if (!settings) return fail(settings.error());
  const ServiceSelection selection =
      select_services(arguments, (*settings).services, (*settings).service_dir, mask);
  for (const std::string& warning : selection.warnings)
    std::fprintf(stderr, "weft-runner: %s\n", warning.c_str());
  if ((*settings).instances == 1) return run_worker(std::move(*settings), selection.files);

  return run_instances((*settings).instances, [&](int number) {
    Settings own = *settings;
    if (own.app.node_id.empty()) {
      char host[256] = "node";
      ::gethostname(host, sizeof host - 1);
      own.app.node_id = std::string(host) + "-" + std::to_string(::getppid());
    }
    own.app.node_id += "-" + std::to_string(number);
    if (own.app.tcp.port != 0) own.app.tcp.port = static_cast<std::uint16_t>(own.app.tcp.port + number - 1);
    return run_worker(std::move(own), selection.files);
  });
}
