#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/runner/option_table.h"

namespace weft::runner {

// Sets options from the environment ("NAME=value" entries):
//  - the documented names (RETRIES, TCP_PORT …) and every option's path in capitals joined by '_'
//  (REGISTRY_PREFERLOCAL);
//    an empty value is passed over;
//  - WEFT_… and MOL_…: "__" goes one level down, "_" begins the next word (MOL_REGISTRY__PREFER_LOCAL). Of
//  these an
//    unknown one is an error.
// true and false in any case are booleans, what looks like a decimal number is a number where the option
// takes one.
[[nodiscard]] Result<std::vector<std::string>> apply_environment(Settings& settings,
                                                                 std::span<const std::string> entries);

// REGISTRY__PREFER_LOCAL → registry.preferLocal.
[[nodiscard]] std::string path_of_variable(std::string_view name_without_prefix);

}  // namespace weft::runner
