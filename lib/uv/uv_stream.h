#pragma once

#include <uv.h>

#include <deque>
#include <memory>
#include <string>

#include "lib/base/buffer.h"
#include "lib/net/network.h"
#include "lib/net/poller.h"
#include "lib/uv/resolver.h"
#include "lib/uv/uv_loop.h"

namespace weft {

// A TCP connection over libuv.
//
// Writes gather in one buffer and leave with one system call at the end of the turn; what the system does not
// take waits until the socket is writable, while new writes gather behind it. Reads are handed on from the
// loop's slab.
class UvStream final : public Stream, private TurnEndFlush, private Poller::Handler {
 public:
  // Connects; a name is looked up first and its addresses are tried in turn.
  UvStream(UvLoop& loop, std::shared_ptr<Resolver> resolver, SocketAddress to, const StreamOptions& options);
  ~UvStream() override;

  // Takes a connection that waits at `listener`. Null when it was gone already.
  [[nodiscard]] static std::unique_ptr<UvStream> accept(UvLoop& loop, uv_stream_t* listener,
                                                        const StreamOptions& options);

  void set_handler(Stream::Handler& handler) override { handler_ = &handler; }
  [[nodiscard]] bool write(BytesView head, BytesView body) override;
  [[nodiscard]] std::size_t queued_bytes() const override;
  void close_after_flush() override;
  [[nodiscard]] SocketAddress remote_address() const override { return remote_; }

 private:
  enum class State { kConnecting, kOpen, kClosed };
  struct Socket;

  UvStream(UvLoop& loop, const StreamOptions& options) : loop_(loop), options_(options) {}

  void connect_next();
  void connect_failed(int status);
  void connected();
  void opened();
  void received(ssize_t count);
  void flush() override;
  void on_readable() override {}  // libuv reads.
  void on_writable() override;
  // What the system takes of it now.
  [[nodiscard]] Result<std::size_t> send(BytesView bytes) const;
  void let_writers_on();
  void drop_socket();
  void fail(const Error& reason);

  UvLoop& loop_;
  const StreamOptions options_;
  Stream::Handler* handler_ = nullptr;
  State state_ = State::kConnecting;
  Socket* socket_ = nullptr;  // Ours until drop_socket(); libuv's until its close callback.
  int descriptor_ = -1;       // The socket's, once it is open.
  Buffer pending_;            // Written by our owner, not yet offered to the system.
  Buffer blocked_;            // Offered; what lies behind blocked_sent_ was not taken.
  std::size_t blocked_sent_ = 0;
  std::unique_ptr<Poller::Watch> writable_;  // While there is something in blocked_.
  bool refused_ = false;                     // A write() gave false and on_writable() is owed.
  bool closing_ = false;                     // close_after_flush() was called.
  SocketAddress remote_;

  // While connecting.
  std::shared_ptr<Resolver> resolver_;
  Resolver::LookupId lookup_ = 0;
  SocketAddress to_;
  std::deque<std::string> addresses_;  // Not yet tried.
  Timer timer_;                        // Ends connecting; then carries upcalls that must not run at once.
};

}  // namespace weft
