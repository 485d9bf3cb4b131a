#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/value/value.h"

namespace weft::cli {

// What a listing leaves out of the rows that `$node.list`, `$node.services` … give. All pure.
struct ListFilter {
  // A name with `*`, `**` or `?` as in events ("math.*"), or a piece of it ("math"). Empty: all.
  std::string pattern;
  std::string node;  // Only what this node has; empty: any.
  bool all = false;  // Also nodes that are offline or only look on, and what is internal or not available.
  std::string self;  // The node that asks: it only looks on.
};

[[nodiscard]] bool fits(std::string_view name, std::string_view pattern);

// Rows of `$node.list` with services, sorted by id.
[[nodiscard]] Value shown_nodes(const Value& rows, const ListFilter& filter);
// Rows of `$node.services`, grouped, sorted by full name. What `filter.self` offers is not there.
[[nodiscard]] Value shown_services(const Value& rows, const ListFilter& filter);
// Rows of `$node.actions` or `$node.events` with endpoints, sorted by name and group; the same.
[[nodiscard]] Value shown_endpoints(const Value& rows, const ListFilter& filter);

// Whether a row of `$node.list` is a node that does work, and is there.
[[nodiscard]] bool is_worker(const Value& node_row, std::string_view self);
// Of rows of `$node.list` with services: whether a node that is there offers the action; `node` alone is
// asked when it is not empty. Who asks does not count.
[[nodiscard]] bool offers(const Value& rows, std::string_view action, std::string_view node,
                          std::string_view self);
// The full names of all services, or of the actions of one, sorted, without internal ones.
[[nodiscard]] std::vector<std::string> service_names(const Value& rows, std::string_view self);
[[nodiscard]] std::vector<std::string> action_names(const Value& rows, std::string_view service,
                                                    std::string_view self);
// The ids of the available nodes behind the endpoints of a row; the one that asks not among them.
[[nodiscard]] std::vector<std::string> nodes_of(const Value& row, std::string_view self);
// Of names, the one that was perhaps meant; empty when none is near.
[[nodiscard]] std::string nearest(std::string_view name, const std::vector<std::string>& names);

}  // namespace weft::cli
