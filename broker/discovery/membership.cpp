#include "broker/discovery/membership.h"

#include "lib/base/config.h"

namespace weft {

namespace {

std::string more(Throttle& throttle) {
  const std::uint64_t held = throttle.take_held();
  return held == 0 ? std::string() : " (" + std::to_string(held) + " lines of this kind were left out.)";
}

}  // namespace

void Membership::apply_info(std::string_view id, const Value& info) {
  if (nodes().find(id) == nullptr && nodes().size() >= nodes_max_) {
    if (full_.pass(loop_.now())) {
      log_.warn("Node '", id, "' is left out: ", nodes_max_,
                " nodes are known already (option registry.nodes_max).", more(full_));
    }
    return;
  }
  info_applied(nodes().apply_info(id, info, loop_.now()));
}

void Membership::info_applied(const InfoOutcome& outcome) {
  Node& node = *outcome.node;
  if (outcome.services_changed) {
    std::string complaint = registry_.register_remote(node);
    if (outcome.left_out) complaint = "it is too large (option registry.catalog_bytes_max).";
    if (!complaint.empty() && complaints_.pass(loop_.now()))
      log_.warn("Not all that node '", node.id, "' announces is taken: ", complaint, more(complaints_));
    if (outcome.restarted) listener_.on_node_restarted(node);
    listener_.on_remote_services_changed();
  } else {
    // The definitions that the registry points to were not touched.
    registry_.endpoints_changed();
  }
  if (outcome.is_new || outcome.reconnected) {
    log_.info("Node '", node.id, "' ", outcome.reconnected ? "reconnected." : "connected.");
    listener_.on_node_connected(node, outcome.reconnected);
  } else {
    log_.debug("Node '", node.id, "' updated.");
    listener_.on_node_updated(node);
  }
}

void Membership::set_offline(std::string_view id, bool unexpected) {
  Node* node = nodes().find(id);
  if (node == nullptr || node->local || !nodes().mark_offline(*node, loop_.now())) return;
  went_offline(*node, unexpected);
}

void Membership::went_offline(Node& node, bool unexpected) {
  registry_.unregister_node(node);
  log_.info("Node '", node.id, "' disconnected", unexpected ? " unexpectedly." : ".");
  listener_.on_node_disconnected(node, unexpected);
  listener_.on_remote_services_changed();
}

void Membership::set_local_services(Value services) {
  Node& self = nodes().self();
  self.services = std::move(services);
  ++self.seq;
}

Value Membership::self_info() const {
  const Node& self = registry_.nodes().self();
  Value info{{"services", self.services}, {"ipList", self.ip_list},
             {"hostname", self.hostname}, {"client", self.client},
             {"config", Value::object()}, {"instanceID", self.instance_id},
             {"metadata", self.metadata}, {"seq", self.seq}};
  if (self.port != 0) info.set("port", self.port);
  return info;
}

}  // namespace weft
