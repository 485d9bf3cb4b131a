#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include "lib/base/log.h"
#include "lib/loop/event_loop.h"
#include "lib/net/network.h"
#include "lib/transport/transporter.h"

namespace weft {

struct AcceptedOptions {
  std::size_t connections_max = 1024;
  std::size_t frame_bytes_max = 1 << 20;
  std::size_t partial_bytes_max = 64UL << 20;  // Of frames under way, over all connections.
};

// The connections other nodes open to this one: frames come in on them, nothing ever goes out.
//
// A peer takes the end of its connection for the end of this node, so an idle one is kept for ever; only
// bytes that are no frames close it. Several connections of one peer are usual.
//
// What has come of frames that are not whole yet is held to one budget for all connections together. Above it
// the connection whose frame has been under way for longest is closed: a frame of a peer in good order takes
// a moment.
//
// Thread: loop thread only.
class AcceptedConnections {
 public:
  // May call close_all(), but not destroy this.
  using FrameCallback = UniqueFunction<void(const FrameView&)>;

  AcceptedConnections(EventLoop& loop, Logger log, AcceptedOptions options, FrameCallback on_frame);
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
  void drop(Connection& connection);
  void note_partial(Connection& connection, bool is_new_frame);
  void warn(std::string_view remote_host, std::string_view what);

  EventLoop& loop_;
  const Logger log_;
  const AcceptedOptions options_;
  FrameCallback on_frame_;
  std::size_t partial_bytes_ = 0;      // Of all connections.
  std::list<Connection> connections_;  // Oldest first.
  Instant quiet_until_{};              // Strangers must not fill the log.
};

}  // namespace weft
