#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/function_ref.h"
#include "lib/error/result.h"
#include "lib/value/value.h"

namespace weft::cli {

// The content of what a word names: "-" (standard input) or "@path" (a file).
using ReadSource = FunctionRef<Result<std::string>(std::string_view source)>;

// The params that the words behind an action's or event's name say; nothing when there are none.
//
//   {"a":1}  - @file       the whole params as JSON: as written, from standard input, from a file
//   --name value           a member; --name=value is the same. --name alone is true, --no-name alone false
//   --a.b value            nests: {"a":{"b":…}}
//   --tag[] value          appends to a list
//   --name:=JSON           a member of any JSON value
//
// Members go over those of a JSON object that stands beside them. What contradicts itself is an error that
// says how to write it.
[[nodiscard]] Result<std::optional<Value>> parse_params(std::span<const std::string> words, ReadSource read);

// One value of a member: true, false and JSON numbers that fit are typed; everything else is text, hex and
// numbers with leading zeros included. Quotes around the word (the shell must leave them) make it text, and
// are not part of it.
[[nodiscard]] Value parse_scalar(std::string_view word);

}  // namespace weft::cli
