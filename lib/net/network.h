#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/buffer.h"
#include "lib/base/unique_function.h"
#include "lib/error/result.h"
#include "lib/time/clock.h"

namespace weft {

// A host and a port. `host` is a name or a numeric address, IPv6 without brackets.
struct SocketAddress {
  std::string host;
  std::uint16_t port = 0;

  [[nodiscard]] bool valid() const { return !host.empty() && port != 0; }
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const SocketAddress&, const SocketAddress&) = default;
};

// One end of a byte stream. Made by Network; the owner destroys it, which closes it at once and silently.
// Thread: loop thread only. Upcalls never run inside a call into the Stream.
class Stream {
 public:
  class Handler {
   public:
    // Bytes that came. Valid during the call, with kReadPadding readable bytes behind them. The handler may
    // destroy the stream from inside.
    virtual void on_data(BytesView bytes) = 0;
    // The stream ended: the peer closed or reset it, or connecting failed. Nothing follows. The handler may
    // destroy the stream from inside.
    virtual void on_closed(const Error& reason) = 0;
    // The queue fell below its low-water mark after write() had refused.
    virtual void on_writable() {}

   protected:
    ~Handler() = default;
  };

  virtual ~Stream() = default;
  // Before the first upcall; the handler is borrowed and outlives the stream.
  virtual void set_handler(Handler& handler) = 0;
  // Queues `head` and `body` behind one another; what a loop turn has queued leaves in one system call. Bytes
  // may be queued before the connection stands. False: the queue is full and nothing was taken.
  [[nodiscard]] virtual bool write(BytesView head, BytesView body) = 0;
  [[nodiscard]] virtual std::size_t queued_bytes() const = 0;
  // Writes what is queued, then closes; on_closed follows.
  virtual void close_after_flush() = 0;
  // The other end, numeric; empty host until connected.
  [[nodiscard]] virtual SocketAddress remote_address() const = 0;
};

// Accepts streams. Destroying it stops listening; accepted streams live on.
class StreamListener {
 public:
  virtual ~StreamListener() = default;
  [[nodiscard]] virtual SocketAddress local_address() const = 0;
};

class DatagramSocket {
 public:
  virtual ~DatagramSocket() = default;
  // Fire and forget; errors are as silent as a lost datagram.
  virtual void send(BytesView datagram, const SocketAddress& to) = 0;
  [[nodiscard]] virtual SocketAddress local_address() const = 0;
};

struct StreamOptions {
  std::size_t queue_bytes_max = 64UL << 20;  // write() refuses above it.
  Duration connect_timeout = std::chrono::seconds(5);
  Duration user_timeout = std::chrono::seconds(2);  // Unacknowledged bytes older than this close the stream.
  Duration keepalive_idle = std::chrono::seconds(1);  // 0 turns keepalive off.
};

struct DatagramOptions {
  SocketAddress bind{"0.0.0.0", 0};
  bool reuse_address = true;                   // Several processes of a host share the port.
  std::optional<std::string> multicast_group;  // Join it on `interface_address`.
  std::string interface_address;  // Numeric IPv4 of the interface to join and send on; empty: any.
  int multicast_ttl = 1;
  bool broadcast = false;
};

struct InterfaceAddress {
  std::string name;
  std::string address;    // Numeric.
  std::string broadcast;  // Numeric broadcast address; empty for IPv6.
  bool is_ipv4 = true;
  bool is_loopback = false;
};

// Sockets. The real one is in lib/uv, the simulated one in lib/sim.
class Network {
 public:
  using AcceptCallback = UniqueFunction<void(std::unique_ptr<Stream>)>;
  using DatagramCallback = UniqueFunction<void(BytesView, const SocketAddress& from)>;

  virtual ~Network() = default;

  // Connects in the background; names are resolved off the loop thread. Failure comes as on_closed.
  virtual std::unique_ptr<Stream> connect(const SocketAddress& to, const StreamOptions& options) = 0;
  // Port 0 lets the system choose. Host "" listens on all interfaces, IPv6 and IPv4.
  virtual Result<std::unique_ptr<StreamListener>> listen(const SocketAddress& at,
                                                         const StreamOptions& options,
                                                         AcceptCallback on_accept) = 0;
  virtual Result<std::unique_ptr<DatagramSocket>> open_datagram(const DatagramOptions& options,
                                                                DatagramCallback on_datagram) = 0;
  [[nodiscard]] virtual std::vector<InterfaceAddress> interfaces() const = 0;
  [[nodiscard]] virtual std::string hostname() const = 0;
};

}  // namespace weft
