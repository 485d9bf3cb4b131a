#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lib/error/result.h"
#include "weft/app.h"

namespace weft::runner {

// What the runner can be told, whatever the way: by a configuration file or by the environment.
struct Settings {
  AppOptions app;
  int instances = 1;
  std::string services;  // Comma list of names or patterns.
  std::string service_dir;
};

// One option: its place in a file, its name in the environment, what it takes.
struct OptionSpec {
  std::string_view path;   // "registry.preferLocal"
  std::string_view env;    // "PREFER_LOCAL"; the path in capitals joined by '_' works too.
  std::string_view takes;  // "true or false", "seconds, 0 or more" …
  std::string_view help;
  // Gives what is wrong with the value, or nothing.
  std::function<bool(Settings&, const Value&)> set;
};

[[nodiscard]] std::span<const OptionSpec> option_table();

// Sets one option. An unknown path, or a value of a wrong kind, is an error that names it, `source`
// ("environment variable RETRIES", "weft.toml") and what is allowed.
[[nodiscard]] Result<> set_option(Settings& settings, std::string_view path, const Value& value,
                                  std::string_view source);

}  // namespace weft::runner
