#pragma once

#include <functional>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "lib/base/function_ref.h"
#include "lib/base/life.h"
#include "lib/loop/signal.h"
#include "tools/cli/command_line.h"

namespace weft::cli {

// What the observer node sees of the mesh, and how long it waits to see more.
//
// Ownership: the broker is borrowed and outlives this. Thread: loop thread only.
class Mesh {
 public:
  Mesh(Broker& broker, const MeshOptions& options, Instant deadline);

  [[nodiscard]] Broker& broker() { return broker_; }
  [[nodiscard]] const std::string& self() const { return broker_.node_id(); }
  // Rows as of `$node.list`, with services.
  [[nodiscard]] Value nodes() const { return broker_.node_list(true); }

  // Waits until somebody is there and nothing new has been heard for a moment. False when nobody has shown up
  // in MeshOptions::wait, or before the deadline.
  Task<bool> settle();
  // Waits until `ready`. False at the deadline, or when the mesh is quiet and `hopeless` says so. Both are
  // named objects of the caller.
  Task<bool> until(FunctionRef<bool()> ready, FunctionRef<bool()> hopeless);

  // What is left until the deadline, at least a millisecond; 0 when there is none.
  [[nodiscard]] Duration time_left() const;

 private:
  [[nodiscard]] bool anyone() const;

  Broker& broker_;
  const Duration wait_;
  const Instant deadline_;
  const Instant began_;
  Instant last_news_;
  Signal news_;
  std::vector<LocalListener> listeners_;
  Life life_;
};

}  // namespace weft::cli
