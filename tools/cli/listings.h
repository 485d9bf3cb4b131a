#pragma once

#include <string_view>

#include "lib/value/value.h"
#include "tools/cli/table.h"

namespace weft::cli {

// The rows of catalog.h as tables for people. `self` is the node that asks.
[[nodiscard]] Table nodes_table(const Value& rows, std::string_view self, bool details);
[[nodiscard]] Table services_table(const Value& rows, bool details);
[[nodiscard]] Table actions_table(const Value& rows, bool details);
[[nodiscard]] Table events_table(const Value& rows, bool details);

}  // namespace weft::cli
