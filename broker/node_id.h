#pragma once

#include <cstdint>
#include <string>

namespace weft {

// The id of a node that was given none: host name in lower case and process id.
[[nodiscard]] std::string default_node_id(std::string hostname, std::int64_t process_id);

}  // namespace weft
