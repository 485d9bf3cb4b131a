#pragma once

#include <string_view>

#include "lib/base/buffer.h"
#include "lib/value/value.h"

namespace weft::test {

// A file of tests/vectors. Aborts when it is not there.
[[nodiscard]] Buffer load_vector(std::string_view file);
// The same as a tree: index.json, values.json …
[[nodiscard]] Value load_json_vector(std::string_view file);

// Replaces the markers of the recordings ({"$buffer": …}, {"$date": …} …) by what they stand for. A member
// that is {"$undefined": true} or {"$absent": true} is dropped.
[[nodiscard]] Value without_markers(const Value& value);

[[nodiscard]] Buffer from_hex(std::string_view hex);
[[nodiscard]] Buffer to_buffer(std::string_view bytes);

}  // namespace weft::test
