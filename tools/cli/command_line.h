#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/log.h"
#include "lib/error/result.h"
#include "lib/time/clock.h"
#include "lib/value/value.h"
#include "transporters/nats/nats_options.h"

namespace weft::cli {

// What the command line said, checked as far as that goes without a mesh.

enum class Command { kNodes, kServices, kActions, kEvents, kCall, kEmit, kBroadcast, kPing };

// Of every command.
struct MeshOptions {
  std::string transporter = "TCP";
  std::string name_space;
  std::string serializer = "JSON";
  Duration timeout = std::chrono::seconds(5);       // Of the whole command; 0: none.
  Duration wait = std::chrono::milliseconds(2500);  // For the first other node.
  bool json = false;
  std::string tcp_urls;
  bool udp = true;
  std::uint16_t udp_port = 4445;
  NatsOptions nats;  // Credentials and certificates.
  LogLevel log_level = LogLevel::kOff;
};

// nodes, services, actions, events.
struct ListOptions {
  std::string pattern;
  std::string node;
  bool all = false;
  bool details = false;
};

// call, emit, broadcast.
struct SendOptions {
  std::string name;                // Of the action or event.
  std::vector<std::string> words;  // Behind it: see params.h.
  Value meta;                      // Null: none.
  Value headers;
  std::string node;            // call: on this one.
  std::optional<int> retries;  // call.
  std::vector<std::string> groups;
};

struct CommandLine {
  Command command = Command::kNodes;
  MeshOptions mesh;
  ListOptions list;
  SendOptions send;
  std::vector<std::string> ping_nodes;  // Empty: all.
};

// Nothing is to be done but to show `text`: help on standard output with exit code 0, or what is wrong with
// the command line on standard error.
struct Answer {
  std::string text;
  int exit_code = 0;
};

// The value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;

// `words` without the program's name. TRANSPORTER, NAMESPACE, SERIALIZER, TCP_URLS, UDP_PORT and
// UDP_DISCOVERY of the environment stand in for options that are not given; what weft-runner knows of NATS
// (NATS_USER, NATS_TLS_CA …) comes from there alone: secrets have no place on a command line.
[[nodiscard]] std::variant<CommandLine, Answer> parse_command_line(std::vector<std::string> words,
                                                                   const Environment& environment);

// Seconds, or a number with "ms", "s" or "m" behind it.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

}  // namespace weft::cli
