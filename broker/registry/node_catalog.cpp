#include "broker/registry/node_catalog.h"

#include <algorithm>

#include "lib/base/assert.h"

namespace weft {

namespace {

std::uint64_t seq_of(const Value& info) {
  const std::int64_t seq = info["seq"].i64_or(1);  // Missing and nonsense are read as 1.
  return seq < 1 ? 1 : static_cast<std::uint64_t>(seq);
}

std::vector<std::string> texts_of(const Value& list) {
  constexpr std::size_t kTextsMax = 64;
  std::vector<std::string> texts;
  for (const Value& item : list.items()) {
    if (item.is_string() && texts.size() < kTextsMax) texts.emplace_back(item.str());
  }
  return texts;
}

}  // namespace

NodeCatalog::NodeCatalog(std::string_view self_id, std::string_view instance_id) {
  auto node = std::make_unique<Node>();
  node->id = self_id;
  node->instance_id = instance_id;
  node->local = true;
  node->available = true;
  node->seq = 1;
  self_ = node.get();
  nodes_.emplace(self_id, std::move(node));
}

Node* NodeCatalog::find(std::string_view id) {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : found->second.get();
}

const Node* NodeCatalog::find(std::string_view id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : found->second.get();
}

Node& NodeCatalog::sight(std::string_view id, Instant now) {
  if (Node* known = find(id)) return *known;
  auto node = std::make_unique<Node>();
  node->id = id;
  node->offline_since = now;
  node->last_heartbeat = now;
  Node& added = *node;
  nodes_.emplace(id, std::move(node));
  return added;
}

InfoOutcome NodeCatalog::apply_info(std::string_view id, const Value& info, Instant now) {
  InfoOutcome outcome;
  Node& node = sight(id, now);
  WEFT_ASSERT(!node.local);
  outcome.node = &node;
  outcome.is_new = node.seq == 0 && !node.available;
  outcome.reconnected = !outcome.is_new && !node.available;

  node.metadata = info["metadata"].is_object() ? info["metadata"] : Value::object();
  node.ip_list = texts_of(info["ipList"]);
  node.hostname = info["hostname"].str_or({});
  if (const std::int64_t port = info["port"].i64_or(0); port > 0 && port <= 65535) {
    node.port = static_cast<std::uint16_t>(port);
  }
  node.client = info["client"];
  node.config = info["config"];

  const std::uint64_t seq = seq_of(info);
  const std::string_view instance_id = info["instanceID"].str_or({});
  const bool was_offline = !node.available;
  if (was_offline) {
    node.available = true;
    node.offline_since.reset();
    node.last_heartbeat = now;
    node.since = now;
  }
  if (seq > node.seq || was_offline || instance_id != node.instance_id) {
    outcome.services_changed = true;
    if (instance_id != node.instance_id) {  // A new process starts counting its load anew.
      outcome.restarted = !was_offline && !node.instance_id.empty();
      node.cpu_seq = 0;
      node.cpu.reset();
      node.since = now;
    }
    node.seq = seq;
    node.instance_id = instance_id;
    node.services = info["services"].is_array() ? info["services"] : Value::array();
  }
  return outcome;
}

bool NodeCatalog::mark_offline(Node& node, Instant now) {
  if (!node.available) return false;
  node.available = false;
  node.offline_since = now;
  ++node.seq;  // Equal numbers are ignored by peers: what returns must be newer than what was buried.
  return true;
}

void NodeCatalog::forget(std::string_view id) {
  const auto found = nodes_.find(id);
  if (found != nodes_.end() && !found->second->local && !found->second->available) nodes_.erase(found);
}

}  // namespace weft
