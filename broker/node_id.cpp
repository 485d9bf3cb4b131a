#include "broker/node_id.h"

#include <algorithm>
#include <cctype>

namespace weft {

std::string default_node_id(std::string hostname, std::int64_t process_id) {
  std::transform(hostname.begin(), hostname.end(), hostname.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return hostname + "-" + std::to_string(process_id);
}

}  // namespace weft
