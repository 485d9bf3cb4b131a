#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/function_ref.h"
#include "lib/error/result.h"
#include "lib/net/network.h"
#include "lib/value/value.h"

namespace weft {

struct StaticPeers {
  struct Peer {
    std::string node;
    SocketAddress address;
  };
  std::vector<Peer> peers;                // Without ourselves.
  std::optional<std::uint16_t> own_port;  // From the entry with our own node ID.
  std::vector<std::string> warnings;      // One for each entry that was left out.
};

using ReadFile = FunctionRef<Result<std::string>(const std::string& path)>;

// Reads TcpOptions::urls in all its forms. An entry is "[tcp://]host:port/nodeID"; the port is what follows
// the last colon. The content of "file://path" is a JSON list, a JSON object, or one entry a line. Fails only
// when a file does.
[[nodiscard]] Result<StaticPeers> read_static_peers(const Value& urls, std::string_view own_node,
                                                    ReadFile read_file);

// The whole file, at most 16 MiB.
[[nodiscard]] Result<std::string> read_peer_file(const std::string& path);

}  // namespace weft
