#pragma once

#include <string_view>

#include "lib/error/error.h"
#include "lib/protocol/payload.h"

namespace weft {

// An error as the object that travels in a RES packet. `node_id` is this node's, for errors born here.
[[nodiscard]] Value error_to_wire(const Error& error, std::string_view node_id, bool with_stack);

// The error of a failed response. A missing or malformed object is an error, too.
[[nodiscard]] Error error_from_wire(const Payload& error, std::string_view sender);

}  // namespace weft
