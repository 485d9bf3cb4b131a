#include "tools/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "lib/base/config.h"
#include "lib/protocol/serializer.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/help.h"
#include "tools/runner/environment.h"

namespace weft::cli {

namespace {

constexpr std::array<LogLevel, 7> kLogLevels = {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo,
                                                LogLevel::kWarn,  LogLevel::kError, LogLevel::kFatal,
                                                LogLevel::kOff};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

Error usage(std::string message) {
  return Error(ErrorClass::kValidation, std::move(message), "USAGE");
}

Result<bool> parse_switch(std::string_view name, const std::string& text) {
  const std::string word = lower(text);
  if (word == "true" || word == "1" || word == "on" || word == "yes") return true;
  if (word == "false" || word == "0" || word == "off" || word == "no") return false;
  return usage(std::string(name) + " is '" + text + "': write true or false.");
}

Result<std::uint16_t> parse_port(std::string_view name, std::string_view text) {
  unsigned number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || number == 0 || number > 65535) {
    return usage(std::string(name) + " is '" + std::string(text) + "': a port is a number from 1 to 65535.");
  }
  return static_cast<std::uint16_t>(number);
}

// What the options' words are before they are checked. CLI11 only fills in texts and flags: messages and the
// order of things (option, environment, default) are ours.
struct Words {
  std::string transporter, name_space, serializer, timeout, wait, tcp_urls, udp_port, log_level;
  bool json = false, no_udp = false;
  std::string pattern, node, meta, headers, retries;
  bool all = false, details = false;
  std::string name;
  std::vector<std::string> groups, ping_nodes;
};

// Of the main command and of each one: `weft --json nodes` and `weft nodes --json` are the same.
void add_mesh_options(CLI::App& app, Words& words) {
  constexpr const char* kGroup = "Mesh";
  const auto text = [&](const char* names, std::string& word, const char* type, const char* about) {
    app.add_option(names, word, about)->type_name(type)->group(kGroup);
  };
  text("-t,--transporter", words.transporter, "URL",
       "TCP, tcp://HOST:PORT/NODE,…, nats://HOST:PORT,…, tls://… (env TRANSPORTER; default TCP)");
  text("-n,--namespace", words.name_space, "NAME", "The mesh's namespace (env NAMESPACE; default none)");
  text("--serializer", words.serializer, "NAME", "JSON or MsgPack, as the mesh has it (env SERIALIZER)");
  text("--timeout", words.timeout, "SECONDS",
       "Give up after so long, 0 never: 5, 0.5, 300ms, 2m (default 5)");
  text("--wait", words.wait, "SECONDS", "How long to wait for the first node to show up (default 2.5)");
  text("--tcp-urls", words.tcp_urls, "LIST",
       "TCP: nodes known from the start, HOST:PORT/NODE,… or file://PATH (env TCP_URLS)");
  text("--udp-port", words.udp_port, "PORT", "TCP: the port of UDP discovery (env UDP_PORT; default 4445)");
  app.add_flag("--no-udp", words.no_udp, "TCP: no UDP discovery (env UDP_DISCOVERY=false)")->group(kGroup);
  app.add_flag("--json", words.json, "The result, or {\"error\":…}, as one line of JSON on standard output")
      ->group("Output");
  app.add_option("--log-level", words.log_level, "Log on standard error: trace … error, off (default off)")
      ->type_name("LEVEL")
      ->group("Output");
}

void add_list_options(CLI::App& app, Words& words, const char* what) {
  app.add_option("PATTERN", words.pattern,
                 std::string("Only ") + what + " whose name fits: math.* or a piece of it")
      ->type_name("");
  app.add_option("--node", words.node, "Only what this node has")->type_name("ID");
  app.add_flag("-a,--all", words.all, "Also what is internal or not available");
  app.add_flag("-d,--details", words.details, "Names instead of numbers, and more columns");
}

void add_send_options(CLI::App& app, Words& words, const char* name, const char* what) {
  app.add_option(name, words.name, what)->type_name("")->required();
  app.add_option("--meta", words.meta, "Meta that goes along, a JSON object")->type_name("JSON");
  app.add_option("--headers", words.headers, "Headers, a JSON object")->type_name("JSON");
  app.allow_extras();
}

struct Entry {
  Command command;
  const char* name;
  const char* about;
  const char* end;
  const char* usage;  // Behind "weft NAME".
};
constexpr std::array<Entry, 8> kEntries = {{
    {Command::kNodes, "nodes", help::kNodes, help::kNodesEnd, "[PATTERN] [OPTIONS]"},
    {Command::kServices, "services", help::kServices, help::kServicesEnd, "[PATTERN] [OPTIONS]"},
    {Command::kActions, "actions", help::kActions, help::kActionsEnd, "[PATTERN] [OPTIONS]"},
    {Command::kEvents, "events", help::kEvents, help::kEventsEnd, "[PATTERN] [OPTIONS]"},
    {Command::kCall, "call", help::kCall, help::kCallEnd, "ACTION [PARAMS] [OPTIONS]"},
    {Command::kEmit, "emit", help::kEmit, help::kEmitEnd, "EVENT [PAYLOAD] [OPTIONS]"},
    {Command::kBroadcast, "broadcast", help::kBroadcast, help::kBroadcastEnd, "EVENT [PAYLOAD] [OPTIONS]"},
    {Command::kPing, "ping", help::kPing, help::kPingEnd, "[NODE …] [OPTIONS]"},
}};

class HelpText final : public CLI::Formatter {
 public:
  HelpText() {
    column_width(30);
    label("Positionals", "Arguments");
  }
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = app->get_description() + "\n\n" + make_usage(app, std::move(name)) +
                       make_subcommands(app, mode) + make_positionals(app) + make_groups(app, mode) + "\n" +
                       make_footer(app);
    for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != text.npos;) text.erase(at, 1);
    return text;
  }
  std::string make_usage(const CLI::App* app, std::string) const override {
    for (const Entry& entry : kEntries) {
      if (app->get_name() == entry.name)
        return std::string("Usage: weft ") + entry.name + " " + entry.usage + "\n";
    }
    return "Usage: weft COMMAND [OPTIONS]\n       weft COMMAND --help\n";
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() || option->get_expected_max() == 0 ? ""
                                                                              : " " + option->get_type_name();
  }
};

void add_command(CLI::App& app, const Entry& entry, Words& words) {
  CLI::App& sub = *app.add_subcommand(entry.name, entry.about);
  sub.group("Commands")->footer(entry.end);
  switch (entry.command) {
    case Command::kNodes:
      add_list_options(sub, words, "nodes");
      break;
    case Command::kServices:
      add_list_options(sub, words, "services");
      break;
    case Command::kActions:
      add_list_options(sub, words, "actions");
      break;
    case Command::kEvents:
      add_list_options(sub, words, "events");
      break;
    case Command::kCall:
      add_send_options(sub, words, "ACTION", "Full name of the action: greeter.hello, v2.users.list");
      sub.add_option("--node", words.node, "Call it on this node")->type_name("ID");
      sub.add_option("--retries", words.retries, "Further tries when it fails and may be tried again")
          ->type_name("N");
      break;
    case Command::kEmit:
    case Command::kBroadcast:
      add_send_options(sub, words, "EVENT", "Name of the event: user.created");
      sub.add_option("--group", words.groups, "Only to this group; may be repeated")
          ->type_name("NAME")
          ->allow_extra_args(false);
      break;
    case Command::kPing:
      sub.add_option("NODE", words.ping_nodes, "Ids of nodes; none: all of them")->type_name("");
      break;
  }
  add_mesh_options(sub, words);
}

// The option's word, else the environment's, else the default.
std::string chosen(const std::string& word, const Environment& environment, const char* variable,
                   const std::string& fallback) {
  if (!word.empty()) return word;
  const char* value = environment(variable);
  return value != nullptr && *value != '\0' ? value : fallback;
}

Result<LogLevel> parse_log_level(const std::string& word) {
  std::string names;
  for (const LogLevel level : kLogLevels) {
    if (to_string(level) == lower(word)) return level;
    names += (names.empty() ? "" : ", ") + std::string(to_string(level));
  }
  return usage("--log-level is '" + word + "': write one of " + names + ".");
}

Result<> read_nats(const Environment& environment, NatsOptions& nats) {
  runner::Settings settings;
  std::vector<std::string> entries;
  for (const runner::OptionSpec& spec : runner::option_table()) {
    const std::string variable(spec.env);
    const char* value = spec.path.starts_with("nats.") ? environment(variable.c_str()) : nullptr;
    if (value != nullptr) entries.push_back(variable + "=" + value);
  }
  const auto applied = runner::apply_environment(settings, entries);
  if (!applied) return usage(applied.error().message());
  nats = settings.app.nats;
  return {};
}

Result<> check_mesh(const Words& words, const Environment& environment, MeshOptions& mesh) {
  mesh.transporter = chosen(words.transporter, environment, "TRANSPORTER", mesh.transporter);
  if (lower(mesh.transporter).starts_with("memory")) {
    return usage("Transporter '" + mesh.transporter +
                 "' joins brokers of one process: nobody else can meet there. Use TCP or a nats:// URL.");
  }
  mesh.name_space = chosen(words.name_space, environment, "NAMESPACE", {});
  mesh.serializer = chosen(words.serializer, environment, "SERIALIZER", mesh.serializer);
  mesh.tcp_urls = chosen(words.tcp_urls, environment, "TCP_URLS", {});
  mesh.json = words.json;
  const std::string port = chosen(words.udp_port, environment, "UDP_PORT", {});
  if (!port.empty()) {
    const auto number = parse_port(words.udp_port.empty() ? "UDP_PORT" : "--udp-port", port);
    if (!number) return number.error();
    mesh.udp_port = *number;
  }
  const auto udp = parse_switch("UDP_DISCOVERY", chosen({}, environment, "UDP_DISCOVERY", "true"));
  if (!udp) return udp.error();
  mesh.udp = *udp && !words.no_udp;
  const auto duration = [](const char* option, const std::string& word, Duration& into) -> Result<> {
    if (word.empty()) return {};
    const auto parsed = parse_duration(word);
    if (!parsed) return usage(std::string(option) + ": " + parsed.error().message());
    into = *parsed;
    return {};
  };
  if (auto good = duration("--timeout", words.timeout, mesh.timeout); !good) return good;
  if (auto good = duration("--wait", words.wait, mesh.wait); !good) return good;
  if (auto good = read_nats(environment, mesh.nats); !good) return good;
  if (!words.log_level.empty()) {
    const auto level = parse_log_level(words.log_level);
    if (!level) return level.error();
    mesh.log_level = *level;
  }
  return {};
}

Result<> parse_object(const char* option, const std::string& word, Value& into) {
  if (word.empty()) return {};
  auto value = parse_json(word);
  if (!value) return usage(std::string(option) + " is no JSON. " + value.error().message());
  if (!value->is_object())
    return usage(std::string(option) + " must be a JSON object, like '{\"user\":\"admin\"}'.");
  into = std::move(*value);
  return {};
}

Result<> check_send(Words& words, SendOptions& send) {
  send.name = words.name;
  if (send.name.empty() || send.name.starts_with("-") || send.name.starts_with("{")) {
    return usage("'" + send.name + "' is no name. The name comes first, params follow.");
  }
  send.node = words.node;
  send.groups = words.groups;
  if (auto good = parse_object("--meta", words.meta, send.meta); !good) return good;
  if (auto good = parse_object("--headers", words.headers, send.headers); !good) return good;
  if (words.retries.empty()) return {};
  int retries = -1;
  const auto [end, fault] =
      std::from_chars(words.retries.data(), words.retries.data() + words.retries.size(), retries);
  if (fault != std::errc() || end != words.retries.data() + words.retries.size() || retries < 0) {
    return usage("--retries is '" + words.retries + "': write a number, 0 or more.");
  }
  send.retries = retries;
  return {};
}

bool takes_words(Command command) {
  return command == Command::kCall || command == Command::kEmit || command == Command::kBroadcast;
}

Answer wrong(std::string message, std::string_view command) {
  const std::string program = command.empty() ? "weft" : "weft " + std::string(command);
  return {"weft: " + std::move(message) + "\n`" + program + " --help` shows how it is used.\n", kExitUsage};
}

std::string unknown_command(const std::vector<std::string>& words) {
  const auto first =
      std::find_if(words.begin(), words.end(), [](const auto& word) { return !word.starts_with('-'); });
  std::string message =
      first == words.end() ? "A command is missing." : "There is no command '" + *first + "'.";
  message += " There are:";
  for (const Entry& entry : kEntries) message += std::string(" ") + entry.name;
  return message + ".";
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const double seconds = unit.empty() || unit == "s" ? number : unit == "ms" ? number / 1000 : number * 60;
  const bool known_unit = unit.empty() || unit == "s" || unit == "ms" || unit == "m";
  if (fault != std::errc() || !known_unit || !(seconds >= 0) || seconds > 1e6) {
    return usage("'" + std::string(text) +
                 "' is no time. Write seconds, or a number with ms, s or m: 5, 0.5, 300ms, 2m.");
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::variant<CommandLine, Answer> parse_command_line(std::vector<std::string> words,
                                                     const Environment& environment) {
  // What stands behind "--" is never an option of ours.
  const auto mark = std::find(words.begin(), words.end(), "--");
  std::vector<std::string> behind_mark(mark == words.end() ? mark : mark + 1, words.end());
  words.erase(mark, words.end());

  Words read;
  CLI::App app(help::kAbout, "weft");
  app.formatter(std::make_shared<HelpText>());  // Subcommands inherit it.
  app.footer(help::kAboutEnd);
  app.set_version_flag("--version", std::string("weft ") + WEFT_VERSION, "Prints the version");
  app.require_subcommand(1);
  add_mesh_options(app, read);
  for (const Entry& entry : kEntries) add_command(app, entry, read);

  const auto entry_given = [&app]() -> const Entry* {
    for (const Entry& entry : kEntries) {
      if (app.get_subcommand(entry.name)->parsed()) return &entry;
    }
    return nullptr;
  };
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(reversed);
  } catch (const CLI::CallForVersion& version) {
    return Answer{std::string(version.what()) + "\n", kExitOk};
  } catch (const CLI::CallForHelp&) {
    const Entry* entry = entry_given();
    return Answer{entry == nullptr ? app.help() : app.get_subcommand(entry->name)->help(), kExitOk};
  } catch (const CLI::ParseError& error) {
    const Entry* entry = entry_given();
    if (entry != nullptr) return wrong(error.what() + std::string("."), entry->name);
    if (words.empty()) return Answer{app.help(), kExitUsage};
    return wrong(unknown_command(words), {});
  }

  const Entry& entry = *entry_given();
  CommandLine line;
  line.command = entry.command;
  if (auto good = check_mesh(read, environment, line.mesh); !good)
    return wrong(good.error().message(), entry.name);
  if (!takes_words(entry.command)) {
    if (!behind_mark.empty()) return wrong("'" + behind_mark.front() + "' is not expected.", entry.name);
    line.list = {.pattern = read.pattern, .node = read.node, .all = read.all, .details = read.details};
    line.ping_nodes = read.ping_nodes;
    return line;
  }
  if (auto good = check_send(read, line.send); !good) return wrong(good.error().message(), entry.name);
  line.send.words = app.get_subcommand(entry.name)->remaining();
  line.send.words.insert(line.send.words.end(), behind_mark.begin(), behind_mark.end());
  return line;
}

}  // namespace weft::cli
