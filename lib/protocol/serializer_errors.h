#pragma once

#include <string>
#include <string_view>

#include "lib/error/error.h"

namespace weft {

// A message that cannot be read: dropped by whoever received it.
[[nodiscard]] inline Error malformed_packet(std::string_view serializer, std::string_view why) {
  return Error(ErrorClass::kInvalidPacketData,
               "Malformed " + std::string(serializer) + " packet: " + std::string(why) + ".");
}

// A packet that cannot be written because of what the user put into it.
[[nodiscard]] inline Error not_encodable(std::string_view serializer, std::string_view why) {
  return Error(ErrorClass::kBase,
               "The value cannot be written as " + std::string(serializer) + ": " + std::string(why) + ".",
               "ENCODE_ERROR");
}

}  // namespace weft
