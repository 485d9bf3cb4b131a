#pragma once

#include <optional>
#include <string>

#include "tools/runner/option_table.h"

namespace weft::runner {

// Reads a TOML (.toml) or JSON (.json) file of at most 16 MiB into a tree.
[[nodiscard]] Result<Value> read_config_file(const std::string& path);
// The same for its content; `path` says which of the two it is, and names it in errors.
[[nodiscard]] Result<Value> parse_config(const std::string& text, const std::string& path);

// Sets every option the tree names. Unknown and ill-typed ones are errors.
[[nodiscard]] Result<> apply_config(Settings& settings, const Value& tree, const std::string& source);

// The file to use: `named`, which must exist; else weft.config.toml or weft.config.json of this folder, if
// there is one.
[[nodiscard]] Result<std::optional<std::string>> find_config_file(const std::string& named);

}  // namespace weft::runner
