#pragma once

#include <cstdint>
#include <memory>

#include "lib/net/network.h"
#include "lib/sim/sim_event_queue.h"

namespace weft {

class SimFabric;
class SimHost;
class SimLoop;
class SimWorld;
struct SimLink;

// A port that a process listens on.
struct SimListening {
  SimHost* host = nullptr;
  SimLoop* loop = nullptr;
  std::uint16_t port = 0;
  bool loopback_only = false;
  bool open = true;
  StreamOptions options;
  Network::AcceptCallback on_accept;
};

// A TCP connection as the two kernels and the wire between them know it. Side 0 connected, side 1 accepted.
//
// A turn's writes leave as one segment; segments arrive in order, late when packets are lost or the wire is
// cut. Each end dies by itself: of the user timeout while bytes do not get through, of the keepalive while
// the wire is cut, of a reset when the other end is no more. Only what a process reads and is told runs on
// its loop, so a frozen process has a living kernel.
//
// Ownership: shared by its streams, the fabric (while there is something to come) and events under way.
class SimConnection final : public std::enable_shared_from_this<SimConnection> {
 public:
  // What a sender may have on the wire and unread at the other end.
  static constexpr std::size_t kWindowBytes = 1UL << 20;

  SimConnection(SimFabric& fabric, std::uint64_t id, SimLoop& loop, const StreamOptions& options);

  [[nodiscard]] std::uint64_t id() const { return id_; }
  void start(const SocketAddress& to);

  // What a Stream does.
  void set_handler(int side, Stream::Handler& handler) { ends_[side].handler = &handler; }
  [[nodiscard]] bool write(int side, BytesView head, BytesView body);
  [[nodiscard]] std::size_t queued_bytes(int side) const { return ends_[side].pending.size(); }
  void close_after_flush(int side);
  [[nodiscard]] const SocketAddress& remote_address(int side) const { return ends_[side].remote; }
  // The owner destroyed the stream.
  void drop(int side);

  // What the fabric does.
  [[nodiscard]] bool is_at(const SimHost& host) const {
    return ends_[0].host == &host || ends_[1].host == &host;
  }
  [[nodiscard]] bool is_between(const SimHost& a, const SimHost& b) const {
    return established_ &&
           ((ends_[0].host == &a && ends_[1].host == &b) || (ends_[0].host == &b && ends_[1].host == &a));
  }
  void path_changed();
  void process_died(const SimLoop& loop, bool silently);
  void reset();
  void break_next() { break_next_ = true; }
  // The host takes writes again.
  void writes_allowed(const SimHost& host);

 private:
  struct End {
    SimHost* host = nullptr;
    SimLoop* loop = nullptr;
    Stream::Handler* handler = nullptr;
    StreamOptions options;
    SocketAddress remote;
    bool open = false;  // The kernel has a socket for it.
    bool fin_wanted = false;
    bool fin_sent = false;
    bool flush_set = false;
    bool retry_set = false;
    bool refused = false;       // A write was refused; on_writable() is owed.
    bool stuck = false;         // What it sent will never get through.
    Buffer pending;             // Written, not on the wire yet.
    std::size_t in_flight = 0;  // Sent, and not read by the other process yet.
    Instant last_arrival{};     // Of what was sent: nothing overtakes it.
    Instant wire_free{};
    Instant trouble_since = kNever;  // Since when bytes wait for a way through, or for their acknowledgement.
    SimEventQueue::EventId trouble_timer = 0;
    SimEventQueue::EventId keepalive_timer = 0;
  };

  [[nodiscard]] bool opened(int from) const;
  void try_connect(const SocketAddress& to, SimHost& host, bool loopback, int attempt);
  void establish(const SocketAddress& to, SimHost& host, bool loopback);
  void accept(const std::shared_ptr<SimListening>& listening);
  void request_flush(int side);
  void pump(int side);
  void send(int side, const SimLink& link, Buffer bytes);
  void send_segment(int side, Instant arrival, Buffer bytes);
  void send_fin(int side);
  void receive(int side, Buffer bytes);
  void bounce(int side);
  void retry_later(int side);
  void probe_later(int side);
  void begin_trouble(int side);
  void end_trouble(int side);
  void notify_writable(int side);
  void close_end(int side);
  void fail(int side, const Error& reason);
  void tell_closed(int side, const Error& reason);
  void remove_if_done();
  void trace(int side, const char* what, std::size_t bytes);

  SimFabric& fabric_;
  SimWorld& world_;
  std::uint64_t id_;
  End ends_[2];
  bool established_ = false;
  bool break_next_ = false;
  SimEventQueue::EventId connect_timer_ = 0;
};

// A process's hold of one end.
class SimStream final : public Stream {
 public:
  SimStream(std::shared_ptr<SimConnection> connection, int side)
      : connection_(std::move(connection)), side_(side) {}
  ~SimStream() override { connection_->drop(side_); }

  void set_handler(Handler& handler) override { connection_->set_handler(side_, handler); }
  [[nodiscard]] bool write(BytesView head, BytesView body) override {
    return connection_->write(side_, head, body);
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return connection_->queued_bytes(side_); }
  void close_after_flush() override { connection_->close_after_flush(side_); }
  [[nodiscard]] SocketAddress remote_address() const override { return connection_->remote_address(side_); }

 private:
  std::shared_ptr<SimConnection> connection_;
  int side_;
};

}  // namespace weft
