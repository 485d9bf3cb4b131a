#pragma once

#include <uv.h>

#include <optional>
#include <string_view>

#include "lib/net/network.h"

namespace weft {

// The address when `host` is numeric (IPv4, IPv6, with or without scope), else nothing.
[[nodiscard]] std::optional<sockaddr_storage> to_sockaddr(const SocketAddress& address);
// Numeric. An IPv4 address in IPv6 clothes (::ffff:a.b.c.d) comes out as the IPv4 address it is.
[[nodiscard]] SocketAddress from_sockaddr(const sockaddr* address);

[[nodiscard]] SocketAddress local_address_of(const uv_tcp_t& handle);
[[nodiscard]] SocketAddress remote_address_of(const uv_tcp_t& handle);
[[nodiscard]] SocketAddress local_address_of(const uv_udp_t& handle);

}  // namespace weft
