#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.h"

namespace greeter {

// What the programs of this example are told on the command line.
struct Options {
  weft::AppOptions app;
  std::string zone;
  std::vector<std::string> words;  // What is no option.

  // The client's.
  std::string action = "greeter.hello";
  std::string strategy;
  std::string shard_key;
  std::optional<int> retries;
  int workers = 1;
  int callers = 8;
  int think_ms = 5;
  std::chrono::milliseconds every{1000};
};

inline constexpr std::string_view kNodeOptionsHelp =
    "  --transporter URL   TCP (the default), tcp://host:port/node,… or nats://host:port\n"
    "  --namespace NAME    only nodes of one namespace see each other; default: greeter\n"
    "  --node-id ID        default: host name and process id\n"
    "  --zone ZONE         put into the node's metadata\n"
    "  --udp-port PORT     of discovery by datagrams over TCP; 0 turns it off\n";

inline constexpr std::string_view kClientOptionsHelp =
    "  --workers N         wait until so many workers are there; default: 1\n"
    "  --action NAME       greeter.hello (the default) or greeter.visit\n"
    "  --strategy NAME     RoundRobin, Random, CpuUsage, Latency, Shard, or PreferZone (with --zone)\n"
    "  --shard-key PATH    of Shard, for instance name\n"
    "  --retries N         further tries of a call that failed\n"
    "  --callers N         loop: calls under way at a time; default: 8\n"
    "  --think MS          loop: how long a worker thinks about an answer; default: 5\n"
    "  --every MS          loop: between two lines; default: 1000\n";

// False when something on the command line is not understood; it has been named on the standard error then.
[[nodiscard]] bool parse(std::span<char* const> arguments, Options& options);

}  // namespace greeter
