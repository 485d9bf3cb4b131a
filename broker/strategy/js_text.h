#pragma once

#include <string>

#include "lib/value/value.h"

namespace weft {

// Appends what JavaScript's String(value) gives, so that a key hashes alike on both sides: 1.5, 1e+21, true,
// "a,b" for an array, "[object Object]" for an object. Integers keep all their digits; a point in time is its
// ISO 8601 text (JavaScript's own depends on the time zone); binary is its bytes.
void append_js_text(const Value& value, std::string& out);
void append_js_text(double number, std::string& out);

}  // namespace weft
