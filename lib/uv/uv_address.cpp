#include "lib/uv/uv_address.h"

#include <cstring>

namespace weft {

std::optional<sockaddr_storage> to_sockaddr(const SocketAddress& address) {
  sockaddr_storage storage{};
  if (uv_ip4_addr(address.host.c_str(), address.port, reinterpret_cast<sockaddr_in*>(&storage)) == 0) {
    return storage;
  }
  storage = {};
  if (uv_ip6_addr(address.host.c_str(), address.port, reinterpret_cast<sockaddr_in6*>(&storage)) == 0) {
    return storage;
  }
  return std::nullopt;
}

SocketAddress from_sockaddr(const sockaddr* address) {
  if (address == nullptr) return {};
  char text[64] = "";  // INET6_ADDRSTRLEN is 46, a scope adds at most 16.
  if (address->sa_family == AF_INET) {
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(address);
    uv_ip4_name(ipv4, text, sizeof text);
    return {text, ntohs(ipv4->sin_port)};
  }
  if (address->sa_family == AF_INET6) {
    const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(address);
    const std::uint16_t port = ntohs(ipv6->sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&ipv6->sin6_addr)) {
      sockaddr_in ipv4{};
      std::memcpy(&ipv4.sin_addr, ipv6->sin6_addr.s6_addr + 12, 4);
      uv_ip4_name(&ipv4, text, sizeof text);
      return {text, port};
    }
    uv_ip6_name(ipv6, text, sizeof text);
    std::string host = text;
    if (ipv6->sin6_scope_id != 0) {
      char interface[UV_IF_NAMESIZE] = "";
      std::size_t size = sizeof interface;
      if (uv_if_indextoname(ipv6->sin6_scope_id, interface, &size) == 0) host += std::string("%") + interface;
    }
    return {host, port};
  }
  return {};
}

namespace {

template <typename Handle>
SocketAddress name_of(const Handle& handle, int (*get)(const Handle*, sockaddr*, int*)) {
  sockaddr_storage storage{};
  int size = sizeof storage;
  if (get(&handle, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  return from_sockaddr(reinterpret_cast<const sockaddr*>(&storage));
}

}  // namespace

SocketAddress local_address_of(const uv_tcp_t& handle) {
  return name_of<uv_tcp_t>(handle, uv_tcp_getsockname);
}
SocketAddress remote_address_of(const uv_tcp_t& handle) {
  return name_of<uv_tcp_t>(handle, uv_tcp_getpeername);
}
SocketAddress local_address_of(const uv_udp_t& handle) {
  return name_of<uv_udp_t>(handle, uv_udp_getsockname);
}

}  // namespace weft
