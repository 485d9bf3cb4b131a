#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/base/log.h"
#include "lib/transport/transporter.h"
#include "transporters/tcp/accepted_connections.h"
#include "transporters/tcp/peer_pool.h"
#include "transporters/tcp/static_peers.h"
#include "transporters/tcp/tcp_options.h"
#include "transporters/tcp/udp_announcer.h"

namespace weft {

// Carries frames straight from node to node over TCP, with nothing in between.
//
// Traffic runs one way on a connection: we write on those we open (PeerPool) and read from those we accept
// (AcceptedConnections). Who is there is the broker's affair: sightings by datagram and from the static list,
// and the ends of connections, go up; addresses come down.
//
// Everything borrowed outlives this. Thread: loop thread only. It may be stopped, but not destroyed, from
// inside an upcall.
class TcpTransporter final : public Transporter, private PeerPool::Owner {
 public:
  TcpTransporter(EventLoop& loop, Network& network, Logger log, TcpOptions options);
  ~TcpTransporter() override;
  TcpTransporter(const TcpTransporter&) = delete;
  TcpTransporter& operator=(const TcpTransporter&) = delete;

  [[nodiscard]] Traits traits() const override;
  // Fails on bad options, an unreadable file of urls, and a port that is taken.
  void start(const Identity& identity, Listener& listener, Completion done) override;
  void stop(Completion done) override;
  [[nodiscard]] Result<> send(std::string_view node, PacketType type, BytesView payload,
                              std::string_view correlation) override;
  [[nodiscard]] Result<> broadcast(PacketType type, BytesView payload) override;

  void learn_address(std::string_view node, const SocketAddress& address) override;
  void forget_node(std::string_view node) override;
  void set_greeting(BytesView payload) override;
  // The address others are to dial; port 0 unless started.
  [[nodiscard]] SocketAddress listen_address() const override;

  [[nodiscard]] std::size_t connection_count() const { return pool_.connection_count(); }
  [[nodiscard]] std::size_t accepted_count() const { return accepted_.size(); }

 private:
  enum class State { kIdle, kRunning, kStopping, kStopped };

  [[nodiscard]] Result<> open(const Identity& identity);
  void start_discovery(const Identity& identity);
  void tell_static_peers();
  void finish_stop();
  [[nodiscard]] std::string advertised_host() const;
  void on_peer_lost(std::string_view node, const Error& reason) override;

  EventLoop& loop_;
  Network& network_;
  const Logger log_;
  const TcpOptions options_;
  State state_ = State::kIdle;
  Listener* listener_ = nullptr;  // Null: no upcalls.
  std::unique_ptr<StreamListener> acceptor_;
  AcceptedConnections accepted_;
  PeerPool pool_;
  std::unique_ptr<UdpAnnouncer> announcer_;
  StaticPeers static_peers_;
  SocketAddress listen_address_;
  Completion started_;
  Completion stopped_;
  Timer timer_;  // Carries start()'s outcome; when stopping, the longest it may take.
};

}  // namespace weft
