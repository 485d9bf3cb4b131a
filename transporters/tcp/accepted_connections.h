#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include "lib/base/log.h"
#include "lib/loop/event_loop.h"
#include "lib/net/network.h"
#include "lib/time/throttle.h"
#include "lib/transport/transporter.h"

namespace weft {

struct AcceptedOptions {
  std::size_t connections_max = 1024;
  std::size_t frame_bytes_max = 1 << 20;
  // Begun frames of all connections together; above it the one that was begun first ends its connection.
  std::size_t partial_bytes_max = 64UL << 20;
  // For a connection's first frame, and for a frame once it has begun; 0: any time.
  Duration frame_timeout = std::chrono::seconds(30);
};

// The connections other nodes open to this one: frames come in on them, nothing ever goes out.
//
// A peer takes the end of its connection for the end of this node, so an idle one is kept for ever; it ends
// for bytes that are no frames, frames that never end, and packets of more than one node. Several connections
// of one peer are usual.
//
// Thread: loop thread only.
class AcceptedConnections {
 public:
  // May call close_all(), but not destroy this.
  using FrameCallback = UniqueFunction<void(const FrameView&)>;
  // A connection of `node` broke: what it sent last may be lost. May call close_all(), but not destroy this.
  using BrokenCallback = UniqueFunction<void(std::string_view node, const Error& reason)>;

  AcceptedConnections(EventLoop& loop, Logger log, AcceptedOptions options, FrameCallback on_frame,
                      BrokenCallback on_broken);
  ~AcceptedConnections();
  AcceptedConnections(const AcceptedConnections&) = delete;
  AcceptedConnections& operator=(const AcceptedConnections&) = delete;

  // When there are too many, the oldest one that never sent a frame makes way; else the newcomer is refused.
  void add(std::unique_ptr<Stream> stream);
  void close_all();
  [[nodiscard]] std::size_t size() const { return connections_.size(); }

 private:
  struct Connection;

  [[nodiscard]] bool make_room();
  void note_partial(Connection& connection, bool had_frame);
  void check_times();
  void drop(Connection& connection);
  void warn(std::string_view remote_host, std::string_view what);

  EventLoop& loop_;
  const Logger log_;
  const AcceptedOptions options_;
  FrameCallback on_frame_;
  BrokenCallback on_broken_;
  std::list<Connection> connections_;  // Oldest first.
  std::size_t partial_bytes_ = 0;      // Of all connections.
  Throttle warnings_;                  // Strangers must not fill the log.
  Timer timer_;                        // Runs check_times() while there is anybody to wait for.
};

}  // namespace weft
