#pragma once

#include <span>
#include <string>
#include <vector>

#include "lib/error/result.h"

namespace weft::runner {

struct ServiceSelection {
  std::vector<std::string> files;     // In order, without repeats.
  std::vector<std::string> warnings;  // Patterns without a match.
};

// Which modules to load. `services` (a comma list, resolved in `service_dir`) replaces `arguments`; without
// it a given `service_dir` is loaded whole, besides the arguments. Each pattern is a file, a folder (searched
// by `mask`, "**/*.so"), a name without extension (".so", also with "lib" in front, is added), or a glob; "!"
// in front removes what it matches.
[[nodiscard]] ServiceSelection select_services(std::span<const std::string> arguments,
                                               const std::string& services, const std::string& service_dir,
                                               const std::string& mask);

// A file path against a glob: '*' and '?' stay within a folder, "**" does not.
[[nodiscard]] bool matches_glob(std::string_view path, std::string_view glob);

}  // namespace weft::runner
