#pragma once

#include <algorithm>
#include <limits>

#include "broker/context.h"

namespace weft {

// The level below `level`, which may be a peer's word.
[[nodiscard]] inline int next_level(int level) {
  return std::min(level, std::numeric_limits<int>::max() - 1) + 1;
}

// The engines' way into a Context: everything a user may only read.
class ContextAccess {
 public:
  explicit ContextAccess(Context& context) : context_(context) {}

  void set_meta(Payload meta) { context_.meta_source_ = std::move(meta); }
  void set_headers(Payload headers) { context_.headers_ = std::move(headers); }
  void set_id(std::string_view id) { context_.id_ = id; }
  void set_request_id(std::string_view id) { context_.request_id_ = id; }
  void set_parent_id(std::string_view id) { context_.parent_id_ = id; }
  void set_caller(std::string_view caller) { context_.caller_ = caller; }
  void set_node_id(std::string_view node_id) { context_.node_id_ = node_id; }
  void set_action(std::string_view action) { context_.action_ = action; }
  void set_event(std::string_view event, EventType type, Payload groups) {
    context_.event_ = event;
    context_.event_type_ = type;
    context_.event_groups_ = std::move(groups);
  }
  void set_level(int level) { context_.level_ = level; }
  void set_tracing(std::optional<bool> tracing) { context_.tracing_ = tracing; }
  void set_deadline(Instant deadline) { context_.deadline_ = deadline; }

  // Callbacks may end the handler and with it the context.
  void request_stop() {
    std::stop_source stop = context_.stop_;
    if (!stop.stop_possible()) {
      context_.stopped_ = true;
    } else {
      stop.request_stop();
    }
  }

  // The meta as it stands now: the tree if someone decoded (and perhaps changed) it, else what came in.
  [[nodiscard]] Payload current_meta() const {
    return context_.meta_ ? Payload(*context_.meta_) : context_.meta_source_;
  }
  [[nodiscard]] const Value& response_headers() const { return context_.response_headers_; }
  // The meta of a call or event that is made from this context: its own with `over` (may be null) laid on
  // top. Without one of them nothing is decoded or copied.
  [[nodiscard]] Payload meta_below(const Value* over) const {
    if (over == nullptr || over->empty()) return current_meta();
    if (!context_.meta_ && context_.meta_source_.is_empty_object()) return Payload(*over);
    Value merged = context_.meta();
    merged.merge(*over);
    return Payload(std::move(merged));
  }
  // Makes everything borrowed independent of the packet it came in.
  void retain() { context_.retain(); }

 private:
  Context& context_;
};

}  // namespace weft
