#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weft::cli {

// Text as a terminal shows it. Pure: no locale.

// Columns that printable UTF-8 takes: 2 for wide characters (CJK, emoji), 0 for marks that combine.
[[nodiscard]] std::size_t text_width(std::string_view text);

// What may go to a terminal: names come from peers, and must neither move the cursor nor turn the writing
// around. Control and direction characters become '?', line ends and tabs a space, bytes that are no UTF-8
// the replacement character.
[[nodiscard]] std::string printable(std::string_view text);

// JSON text whose characters of that kind are escaped; line ends stay.
[[nodiscard]] std::string printable_json(std::string_view json);

// `text` cut to `width` columns, with an ellipsis in the last one when something is missing.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t width);

// How many letters to change, add, drop or swap with a neighbour to make one of the other.
[[nodiscard]] std::size_t edit_distance(std::string_view one, std::string_view other);

}  // namespace weft::cli
