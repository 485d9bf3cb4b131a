#pragma once

#include <algorithm>
#include <string_view>

#include "lib/net/network.h"

namespace weft {

// Whether `host`, a numeric address as a socket shows it, is one of this machine's.
[[nodiscard]] inline bool is_own_host(const Network& network, std::string_view host) {
  const std::vector<InterfaceAddress> interfaces = network.interfaces();
  return std::any_of(interfaces.begin(), interfaces.end(),
                     [host](const InterfaceAddress& each) { return each.address == host; });
}

}  // namespace weft
