#pragma once

#include <string_view>

namespace weft {

// Whether a name (of an event, say) fits a subscription's pattern: `*` is any run without a dot, `**` any
// run,
// `?` one character. A pattern without `?` whose only star is its last character looks at no dot in the first
// character behind the prefix: "user*" takes "user.x". Every other character stands for itself.
//
// The work is at most |text| × |pattern| steps, whatever a peer sends.

// As Moleculer does it, so that both sides of a mesh agree who gets an event: in patterns with a star or `?`
// somewhere else than at the end, a written dot stands for any character ("*.created" takes "xcreated").
[[nodiscard]] bool matches_compatible(std::string_view text, std::string_view pattern);

// The same with dots that mean dots.
[[nodiscard]] bool matches_strict(std::string_view text, std::string_view pattern);

}  // namespace weft
