#include "broker/registry/node_catalog.h"

#include <algorithm>
#include <utility>

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
    if (item.is_string() && item.str().size() <= kNameBytesMax && texts.size() < kTextsMax)
      texts.emplace_back(item.str());
  }
  return texts;
}

std::string_view short_text(const Value& value) {
  const std::string_view text = value.str_or({});
  return text.size() <= kNameBytesMax ? text : std::string_view();
}

// About what a tree takes in memory.
std::size_t memory_of(const Value& value) {
  std::size_t bytes = sizeof(Value);
  if (value.is_string() || value.is_binary()) {
    const std::size_t size = value.is_string() ? value.str().size() : value.binary().size();
    if (size >= sizeof(Value) - 1) bytes += size + 32;
  }
  for (const Value& item : value.items()) bytes += memory_of(item);
  for (const Member& member : value.members()) {
    bytes += sizeof(std::string) + memory_of(member.value);
    if (member.key.size() >= 16) bytes += member.key.size() + 16;
  }
  return bytes;
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

  node.ip_list = texts_of(info["ipList"]);
  node.hostname = short_text(info["hostname"]);
  if (const std::int64_t port = info["port"].i64_or(0); port > 0 && port <= 65535) {
    node.port = static_cast<std::uint16_t>(port);
  }

  const std::uint64_t seq = seq_of(info);
  const std::string_view instance_id = short_text(info["instanceID"]);
  const bool was_offline = !node.available;
  outcome.services_changed = seq > node.seq || was_offline || instance_id != node.instance_id;

  const std::size_t described =
      memory_of(info["metadata"]) + memory_of(info["client"]) + memory_of(info["config"]);
  const std::size_t services = outcome.services_changed ? memory_of(info["services"]) : node.services_bytes;
  outcome.left_out = !has_room_for(node, described + services, now);
  static const Value kNothing;
  const Value& kept = outcome.left_out ? kNothing : info;
  node.metadata = kept["metadata"].is_object() ? kept["metadata"] : Value::object();
  node.client = kept["client"];
  node.config = kept["config"];

  if (was_offline) {
    node.available = true;
    node.offline_since.reset();
    node.last_heartbeat = now;
    node.since = now;
  }
  if (outcome.services_changed) {
    if (instance_id != node.instance_id) {  // A new process starts counting its load anew.
      outcome.restarted = !was_offline && !node.instance_id.empty();
      node.cpu_seq = 0;
      node.cpu.reset();
      node.since = now;
    }
    node.seq = seq;
    node.instance_id = instance_id;
    node.services = kept["services"].is_array() ? kept["services"] : Value::array();
    node.services_bytes = outcome.left_out ? 0 : services;
  }
  account(node, (outcome.left_out ? 0 : described) + node.services_bytes, node.services_bytes);
  return outcome;
}

void NodeCatalog::account(Node& node, std::size_t bytes, std::size_t services_bytes) {
  info_bytes_ += bytes - node.info_bytes;
  node.info_bytes = bytes;
  node.services_bytes = services_bytes;
}

bool NodeCatalog::has_room_for(const Node& node, std::size_t bytes, Instant now) {
  if (bytes > info_bytes_max_ / 16) return false;
  const auto fits = [&] { return info_bytes_ - node.info_bytes + bytes <= info_bytes_max_; };
  if (fits()) return true;
  // Endpoints of a node that went just now may still point into its services.
  const Instant latest = now - std::chrono::seconds(1);
  for (const auto& [id, other] : nodes_) {
    if (other->offline_since && *other->offline_since < latest && other.get() != &node) forget_info(*other);
  }
  return fits();
}

void NodeCatalog::forget_info(Node& node) {
  node.services = Value::array();
  node.metadata = Value::object();
  node.client = Value();
  node.config = Value();
  account(node, 0, 0);
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
  if (found == nodes_.end() || found->second->local || found->second->available) return;
  info_bytes_ -= found->second->info_bytes;
  nodes_.erase(found);
}

}  // namespace weft
