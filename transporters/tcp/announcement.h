#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/buffer.h"

namespace weft {

// What a discovery datagram says: somebody called `node` listens on TCP `port` of the sending host.
struct Announcement {
  std::string_view node;  // Into the datagram.
  std::uint16_t port = 0;
};

// Longer names are not believed.
inline constexpr std::size_t kAnnouncedIdBytesMax = 255;

// Nothing unless the datagram is `name_space|nodeID|port` with our namespace, a node that is not `own_node`
// (empty: any node) and a port from 1 to 65535.
[[nodiscard]] std::optional<Announcement> parse_announcement(BytesView datagram, std::string_view name_space,
                                                             std::string_view own_node);
[[nodiscard]] std::string make_announcement(std::string_view name_space, std::string_view node,
                                            std::uint16_t port);

// 1 to 65535 in plain digits.
[[nodiscard]] std::optional<std::uint16_t> parse_port(std::string_view text);

}  // namespace weft
