#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "broker/calls/call_engine.h"
#include "broker/discovery/control_sender.h"
#include "broker/dispatch/request_server.h"
#include "broker/events/event_engine.h"
#include "lib/base/life.h"
#include "lib/base/log.h"
#include "lib/loop/event_loop.h"
#include "lib/protocol/packet.h"
#include "lib/protocol/serializer.h"
#include "lib/time/throttle.h"
#include "lib/transport/transporter.h"

namespace weft {

// Packets in and out: between frames of the transporter and the engines of the broker.
//
// Knows the protocol's version rules and the serializer; decides nothing about nodes or calls.
// Ownership: borrows transporter, serializer and handler. Thread: loop thread only.
class Transit final : public RequestSender,
                      public ResponseSender,
                      public EventSender,
                      public ControlSender,
                      public PeerAddresses,
                      private Transporter::Listener {
 public:
  // What comes in. Packets are valid during the call; the sender is never this node, except for requests,
  // responses and events in balanced mode.
  class Handler {
   public:
    virtual void on_request(const RequestPacket& packet) = 0;
    virtual void on_response(const ResponsePacket& packet) = 0;
    // `is_balanced`: the bus chose this node among those of a group.
    virtual void on_event(const EventPacket& packet, bool is_balanced) = 0;
    // DISCOVER, INFO, DISCONNECT, HEARTBEAT, PING, PONG and the gossip packets, as trees.
    virtual void on_control(PacketType type, std::string_view sender, const Value& body,
                            std::string_view remote_host) = 0;
    // An INFO under our own node id from another process.
    virtual void on_duplicate_node(const Value& info) = 0;
    // Another process that has our node id is joining.
    virtual void on_duplicate_joining() = 0;
    // Somebody at `address` says that it has our node id. Over TCP; it may be this process, through a wrong
    // entry in a list of nodes.
    virtual void on_duplicate_sighted(const SocketAddress& address) = 0;
    virtual void on_transporter_reconnected() = 0;
    virtual void on_transporter_disconnected(const Error& reason) = 0;
    virtual void on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) = 0;
    virtual void on_node_lost(std::string_view node, const Error& reason) = 0;
    virtual void on_undelivered(std::string_view node, std::string_view id) = 0;
    virtual void on_transit_error(const Error& error, std::string_view type) = 0;

   protected:
    ~Handler() = default;
  };

  struct Config {
    std::string node_id;
    std::string name_space;
    std::string instance_id;
    bool disable_version_check = false;
  };

  Transit(Config config, const EventLoop& loop, Transporter& transporter, const Serializer& serializer,
          Handler& handler, Logger log);

  void start(Transporter::Completion done);
  void stop(Transporter::Completion done);
  // Requests that come in are kept (up to a limit) until release_requests(): while a node is joining, it is
  // not settled whether they are for it.
  void hold_requests() { holding_ = true; }
  void release_requests();
  [[nodiscard]] Transporter& transporter() { return transporter_; }
  [[nodiscard]] bool connected() const { return connected_; }

  [[nodiscard]] Result<> send_request(std::string_view node, const RequestPacket& packet) override;
  [[nodiscard]] Result<> send_balanced_request(const RequestPacket& packet) override;
  // Answers; when the answer itself cannot be written, answers with that error.
  void send_response(std::string_view node, const ResponsePacket& packet) override;
  [[nodiscard]] Result<> send_event(std::string_view node, const EventPacket& packet) override;
  [[nodiscard]] Result<> send_balanced_event(std::string_view group, const EventPacket& packet) override;
  [[nodiscard]] Result<> forward_event(std::string_view node, const EventPacket& packet) override;
  // `body` gets ver and sender. An empty node means all.
  Result<> send_control(PacketType type, std::string_view node, Value body) override;
  // Asks the bus whether anybody is there under that name.
  void probe(std::string_view node);

  void set_greeting(Value hello) override;
  void learn_address(std::string_view node, const SocketAddress& address) override;
  void forget_node(std::string_view node) override;
  [[nodiscard]] SocketAddress listen_address() const override;

 private:
  void on_frame(const FrameView& frame) override;
  void on_reconnected() override;
  void on_disconnected(const Error& reason) override;
  void on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) override;
  void on_node_lost(std::string_view node, const Error& reason) override;
  void on_undelivered(std::string_view node, std::string_view correlation) override;

  // Nothing when the packet was dropped.
  template <typename Packet>
  [[nodiscard]] std::optional<Packet> decode(const FrameView& frame);
  void receive_control(const FrameView& frame);
  void receive_own(PacketType type, const Value& body, std::string_view remote_host);
  void hold(const FrameView& request);
  // Stamps and encodes into scratch_.
  template <typename Packet>
  [[nodiscard]] Result<> encode(const Packet& packet);
  void trim_scratch();
  [[nodiscard]] Result<Buffer> encode_control(Value body);
  // Whether the sender may be listened to; else the frame is dropped, and its link with it when it lies.
  [[nodiscard]] bool accepts(const FrameView& frame, std::string_view ver, std::string_view sender);
  void drop(const FrameView& frame, const Error& error);

  Config config_;
  const EventLoop& loop_;
  Transporter& transporter_;
  const Serializer& serializer_;
  Handler& handler_;
  Logger log_;
  Throttle dropped_;  // Log lines about dropped packets.
  Buffer scratch_;    // Reused for every packet that leaves.
  bool connected_ = false;
  bool holding_ = false;
  std::vector<Buffer> held_;
  std::size_t held_bytes_ = 0;
  int own_discovers_ = 0;  // Broadcast, and not yet seen coming back.
  Life life_;
};

}  // namespace weft
