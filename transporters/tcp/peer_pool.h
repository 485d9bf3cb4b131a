#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/buffer.h"
#include "lib/loop/event_loop.h"
#include "lib/net/network.h"

namespace weft {

struct PeerPoolOptions {
  std::size_t connections_max = 32;  // 0: no limit.
  std::size_t queue_total_bytes_max = 256UL << 20;
  StreamOptions stream;
};

// The connections this node opens: one to each node it has something to say to, made on demand and kept.
//
// A connection's first frame is the greeting; what is sent while it is made waits on it. Nothing is read from
// these connections, but their end is the sign that a node is gone.
//
// Thread: loop thread only.
class PeerPool {
 public:
  class Owner {
   public:
    // The connection to `node` ended, or could not be made. Never from inside a call into the pool.
    virtual void on_peer_lost(std::string_view node, const Error& reason) = 0;

   protected:
    ~Owner() = default;
  };

  // All are borrowed and outlive the pool.
  PeerPool(EventLoop& loop, Network& network, Owner& owner, PeerPoolOptions options);
  ~PeerPool();
  PeerPool(const PeerPool&) = delete;
  PeerPool& operator=(const PeerPool&) = delete;

  // A whole frame that opens every connection from now on. Until the first one, connections are not made and
  // frames wait.
  void set_greeting(BytesView frame);
  // A node whose address is told again is there: it is dialled at once, whatever it refused before.
  void learn_address(std::string_view node, const SocketAddress& address);
  // Drops the connection silently, and the address.
  void forget_node(std::string_view node);

  // Queues `header` and `payload` as one frame. `is_traffic`: counts as use when a connection has to make way
  // for another. On an error nothing was taken.
  [[nodiscard]] Result<> send(std::string_view node, BytesView header, BytesView payload, bool is_traffic);

  // Writes out what is queued, then closes everything; `done` runs when that is so, never at once.
  void close_after_flush(UniqueFunction<void()> done);
  // Drops everything at once; no upcall follows, and close_after_flush()'s `done` is forgotten.
  void close();

  [[nodiscard]] std::size_t connection_count() const { return connection_count_; }

 private:
  struct Connection;
  struct Peer {
    std::string node;
    SocketAddress address;
    std::unique_ptr<Connection> connection;
    Buffer waiting;  // For the first greeting.
    std::uint64_t last_use = 0;
    int failures = 0;  // In a row.
    Instant dial_after{};
  };

  [[nodiscard]] Peer* find(std::string_view node);
  [[nodiscard]] Result<> wait_for_greeting(Peer& peer, BytesView header, BytesView payload);
  // Whether too much waits for all peers together.
  [[nodiscard]] bool is_overfull() const;
  [[nodiscard]] Error queue_full(const Peer& peer, std::size_t queued_bytes) const;
  void dial(Peer& peer);
  void make_room(const Peer& newcomer);
  void retire(Peer& peer);
  void closed(Connection& connection, const Error& reason);
  void retired_closed(Connection& connection, const Error& reason);
  void check_all_closed();

  EventLoop& loop_;
  Network& network_;
  Owner& owner_;
  const PeerPoolOptions options_;
  Buffer greeting_;
  std::map<std::string, Peer, std::less<>> peers_;
  std::vector<std::unique_ptr<Connection>> retired_;  // Writing out their last bytes.
  std::size_t connection_count_ = 0;                  // Without the retired ones.
  std::uint64_t uses_ = 0;
  bool closing_ = false;
  UniqueFunction<void()> all_closed_;
  Timer all_closed_timer_;
};

}  // namespace weft
