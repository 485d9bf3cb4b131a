#include "examples/greeter/options.h"

#include <charconv>
#include <functional>
#include <iostream>
#include <map>

namespace greeter {

namespace {

bool to_number(std::string_view text, int min, int max, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= min && out <= max;
}

using Setter = std::function<bool(Options&, std::string_view)>;

Setter text(std::string Options::*member) {
  return [member](Options& options, std::string_view value) {
    options.*member = value;
    return true;
  };
}

Setter number(int Options::*member, int min, int max) {
  return
      [=](Options& options, std::string_view value) { return to_number(value, min, max, options.*member); };
}

const std::map<std::string_view, Setter>& setters() {
  static const std::map<std::string_view, Setter> kSetters = {
      {"--transporter", [](Options& o, std::string_view v) { return o.app.transporter = v, true; }},
      {"--namespace", [](Options& o, std::string_view v) { return o.app.name_space = v, true; }},
      {"--node-id", [](Options& o, std::string_view v) { return o.app.node_id = v, true; }},
      {"--zone", text(&Options::zone)},
      {"--udp-port",
       [](Options& o, std::string_view v) {
         int port = 0;
         if (!to_number(v, 0, 65535, port)) return false;
         o.app.tcp.udp_discovery = port != 0;
         if (port != 0) o.app.tcp.udp_port = static_cast<std::uint16_t>(port);
         return true;
       }},
      {"--action", text(&Options::action)},
      {"--strategy", text(&Options::strategy)},
      {"--shard-key", text(&Options::shard_key)},
      {"--retries", [](Options& o, std::string_view v) { return to_number(v, 0, 100, o.retries.emplace()); }},
      {"--workers", number(&Options::workers, 0, 1000)},
      {"--callers", number(&Options::callers, 1, 10'000)},
      {"--think", number(&Options::think_ms, 0, 60'000)},
      {"--every",
       [](Options& o, std::string_view v) {
         int ms = 0;
         if (!to_number(v, 10, 60'000, ms)) return false;
         o.every = std::chrono::milliseconds(ms);
         return true;
       }},
  };
  return kSetters;
}

}  // namespace

bool parse(std::span<char* const> arguments, Options& options) {
  options.app.transporter = "TCP";
  options.app.name_space = "greeter";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (!argument.starts_with("--")) {
      options.words.emplace_back(argument);
      continue;
    }
    const auto setter = setters().find(argument);
    if (setter == setters().end()) {
      std::cerr << "There is no option " << argument << ".\n";
      return false;
    }
    if (++i == arguments.size() || !setter->second(options, arguments[i])) {
      std::cerr << "Option " << argument << " takes another value.\n";
      return false;
    }
  }
  if (!options.zone.empty()) options.app.metadata = weft::Value{{"zone", options.zone}};
  return true;
}

}  // namespace greeter
