#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/unique_function.h"
#include "lib/error/result.h"
#include "lib/net/network.h"
#include "lib/protocol/packet.h"

namespace weft {

// The link that a frame came in on, where it has one of its own (peer to peer).
class FrameLink {
 public:
  // Its frames are all of one node. False: this is not the first node that it speaks for.
  [[nodiscard]] virtual bool speaks_for(std::string_view node) = 0;
  // A frame broke a limit: the link ends after this upcall.
  virtual void refuse(const Error& why) = 0;

 protected:
  ~FrameLink() = default;
};

// One message as it came in.
struct FrameView {
  PacketType type;
  BytesView payload;             // Valid during the call; kReadPadding readable bytes follow.
  std::string_view remote_host;  // Numeric address of the sending socket; empty on a bus.
  bool is_balanced = false;      // The bus chose us, among those who subscribe_balanced().
  FrameLink* link = nullptr;     // Valid during the call; null on a bus, whose links are the bus's affair.
};

// One event subscription for a transporter that balances by itself.
struct BalancedEvent {
  std::string group;
  std::string pattern;
};

// Carries frames between this node and its peers.
//
// Knows sockets, subjects and connection state; a frame's payload is opaque to it. There are two kinds: a bus
// (memory, NATS), where a broadcast reaches every node, and peer to peer (TCP), where frames have one target
// and discovery is by sighting and gossip.
//
// Ownership: the Broker owns its Transporter. The Listener is borrowed and outlives it.
// Thread: loop thread only. Upcalls never run inside a call into the Transporter.
class Transporter {
 public:
  class Listener {
   public:
    virtual void on_frame(const FrameView& frame) = 0;
    // The bus can be used (again): all subscriptions stand. Not called for the first connect, which is
    // start()'s.
    virtual void on_reconnected() = 0;
    // The bus was lost; the transporter is trying to get it back.
    virtual void on_disconnected(const Error& reason) = 0;
    // `node` is said to listen at `address`: by its own datagram, or `listed` in the configuration. Not yet
    // known to be alive. Our own node ID: another process uses it.
    virtual void on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) = 0;
    // The link to `node` broke or could not be made.
    virtual void on_node_lost(std::string_view node, const Error& reason) = 0;
    // The bus says that nobody takes frames for `node`. `correlation` names the frame, or is empty.
    virtual void on_undelivered(std::string_view node, std::string_view correlation) = 0;

   protected:
    ~Listener() = default;
  };

  struct Identity {
    std::string node_id;
    std::string name_space;
  };

  struct Traits {
    std::string_view name;  // "TCP", "NATS", "Memory".
    bool is_bus = true;
    bool can_balance = false;  // Understands subscribe_balanced() and publish_balanced().
    std::size_t payload_bytes_max =
        0;  // The largest payload that may be sent; 0: no limit. Known once started.
  };

  using Completion = UniqueFunction<void(Result<>)>;

  virtual ~Transporter() = default;
  [[nodiscard]] virtual Traits traits() const = 0;

  // Connects and subscribes. `done` runs once: ready to send, or the first terminal error. A bus that is
  // merely away is waited for.
  virtual void start(const Identity& identity, Listener& listener, Completion done) = 0;
  // Sends what is queued, leaves and closes. `done` runs once, within 2 s even with the bus away. No upcall
  // follows.
  virtual void stop(Completion done) = 0;

  // Queues a payload for `node`. On an error nothing was taken: shed it, or try another node. `correlation`
  // comes back with on_undelivered(), where the transporter can tell; at most 64 bytes without blanks, dots
  // or wildcards.
  [[nodiscard]] virtual Result<> send(std::string_view node, PacketType type, BytesView payload,
                                      std::string_view correlation = {}) = 0;
  // To every node of the bus. Peer to peer transporters take nothing here and say so by is_bus.
  [[nodiscard]] virtual Result<> broadcast(PacketType type, BytesView payload) = 0;
  // Asks the bus whether anybody takes frames for `node`: on_undelivered(node, "") follows if not.
  // `pong` is what `node` receives if it is there: a PONG packet that names `node` itself as its sender, for
  // every kind of node drops packets of its own name without a word. Without one, peers that are no weft
  // nodes may log an unreadable packet. Transporters that learn of a loss by themselves do nothing.
  virtual void probe(std::string_view node, BytesView pong = {});

  // Balanced mode: replaces the subscriptions to actions and events whose messages the bus itself spreads.
  // What a pattern means can be narrower than what a bus can tell apart (event_subscription()): then events
  // come that it does not match, and of their group nobody else gets them.
  virtual void subscribe_balanced(std::span<const std::string> actions,
                                  std::span<const BalancedEvent> events);
  [[nodiscard]] virtual Result<> publish_balanced_request(std::string_view action, BytesView payload);
  [[nodiscard]] virtual Result<> publish_balanced_event(std::string_view group, std::string_view event,
                                                        BytesView payload);

  // Peer to peer: where `node` listens, as discovery learned it; and the end of it.
  virtual void learn_address(std::string_view node, const SocketAddress& address);
  virtual void forget_node(std::string_view node);
  // Peer to peer: the payload that opens every connection we make (GOSSIP_HELLO).
  virtual void set_greeting(BytesView payload);
  // Peer to peer: where this node listens; port 0 before start() and on a bus.
  [[nodiscard]] virtual SocketAddress listen_address() const;
};

}  // namespace weft
