#pragma once

#include <functional>
#include <memory>

#include "broker/options.h"
#include "broker/registry/registry.h"
#include "broker/service.h"
#include "lib/runtime/runtime.h"

namespace weft {

// The service `$node`: what there is in the mesh, asked of this node. Borrows its parts, which outlive it.
struct NodeServiceParts {
  Registry& registry;
  EventLoop& loop;
  SystemProbe& system;
  Network& network;
  const BrokerOptions& options;
};
[[nodiscard]] std::shared_ptr<Service> make_node_service(NodeServiceParts parts);

// `$node.list`.
[[nodiscard]] Value list_nodes(const NodeCatalog& nodes, bool with_services, bool only_available);

}  // namespace weft
