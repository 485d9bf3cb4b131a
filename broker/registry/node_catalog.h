#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "broker/registry/node.h"
#include "lib/base/unique_function.h"

namespace weft {

// What applying an INFO did to a node.
struct InfoOutcome {
  Node* node = nullptr;
  bool is_new = false;            // Never heard of before (or only sighted).
  bool reconnected = false;       // Was known and offline.
  bool restarted = false;         // Was online, and is another process now: the old one's end went unnoticed.
  bool left_out = false;          // Its INFO is too large to keep: it is known, with nothing to offer.
  bool services_changed = false;  // Its service list is to be registered anew from `node->services`.
};

// Every node this one knows of, itself included. Pure: takes inputs and time, holds no timer.
//
// Nodes are kept in order of their names, so that nothing depends on the order of discovery; a Node keeps its
// address until forget(). Thread: loop thread only.
class NodeCatalog {
 public:
  explicit NodeCatalog(std::string_view self_id, std::string_view instance_id);

  // Memory for what nodes say of themselves, all together; one of them gets at most a sixteenth. Above it
  // what offline nodes said is forgotten, then newcomers are left out.
  void set_info_bytes_max(std::size_t bytes) { info_bytes_max_ = bytes; }
  [[nodiscard]] std::size_t info_bytes() const { return info_bytes_; }

  [[nodiscard]] Node& self() { return *self_; }
  [[nodiscard]] const Node& self() const { return *self_; }
  [[nodiscard]] Node* find(std::string_view id);
  [[nodiscard]] const Node* find(std::string_view id) const;
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  // Visits every node in order of names.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [id, node] : nodes_) visit(static_cast<const Node&>(*node));
  }

  // Adds a node that was only heard of, offline with seq 0; gives the known one if there is.
  Node& sight(std::string_view id, Instant now);

  // Applies an INFO body (a whole map: services, seq, instanceID, ipList …) of another node, by the rules of
  // the protocol: services count only with a larger seq, from a new instance, or when the node was offline;
  // then seq and instance are adopted, whatever they are.
  InfoOutcome apply_info(std::string_view id, const Value& info, Instant now);

  // Makes an available node unavailable and raises its seq by one. False if it was not available.
  bool mark_offline(Node& node, Instant now);

  // Forgets a node that is offline.
  void forget(std::string_view id);

 private:
  [[nodiscard]] bool has_room_for(const Node& node, std::size_t bytes, Instant now);
  void account(Node& node, std::size_t bytes, std::size_t services_bytes);
  void forget_info(Node& node);

  std::size_t info_bytes_max_ = 512UL << 20;
  std::size_t info_bytes_ = 0;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> nodes_;
  Node* self_;
};

}  // namespace weft
