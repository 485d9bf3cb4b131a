#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/value/value.h"

namespace weft {

// JavaScript's Date.toISOString(): "2023-11-14T22:13:20.123Z"; years outside 0–9999 get a sign and six
// digits.
[[nodiscard]] std::string to_iso_time(Timestamp time);

// JavaScript's Date.toUTCString(): "Tue, 14 Nov 2023 22:13:20 GMT".
[[nodiscard]] std::string to_utc_text(Timestamp time);

// Reads "YYYY-MM-DD" (or ±YYYYYY for the year), with optional "THH:MM[:SS[.fraction]]" and zone ("Z" or
// ±HH:MM; none means UTC).
[[nodiscard]] std::optional<Timestamp> parse_iso_time(std::string_view text);

}  // namespace weft
