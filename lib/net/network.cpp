#include "lib/net/network.h"

namespace weft {

std::string SocketAddress::to_string() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace weft
