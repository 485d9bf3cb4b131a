#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "broker/registry/registry.h"
#include "lib/base/log.h"
#include "lib/error/result.h"
#include "lib/loop/event_loop.h"
#include "lib/net/network.h"
#include "lib/protocol/packet.h"
#include "lib/time/throttle.h"

namespace weft {

// Who is in the mesh, with what: keeps node catalog and registry in step and says what changed.
//
// The discoveries (by heartbeat, by gossip) feed it with what they learn. Thread: loop thread only.
class Membership {
 public:
  class Listener {
   public:
    virtual void on_node_connected(const Node& node, bool reconnected) = 0;
    virtual void on_node_updated(const Node& node) = 0;
    // It is another process now; what the old one was asked will not be answered.
    virtual void on_node_restarted(const Node& node) = 0;
    // Its endpoints are gone from the registry already.
    virtual void on_node_disconnected(const Node& node, bool unexpected) = 0;
    virtual void on_remote_services_changed() = 0;

   protected:
    ~Listener() = default;
  };

  Membership(EventLoop& loop, Registry& registry, std::size_t nodes_max, Listener& listener, Logger log)
      : loop_(loop), registry_(registry), nodes_max_(nodes_max), listener_(listener), log_(std::move(log)) {}

  [[nodiscard]] NodeCatalog& nodes() { return registry_.nodes(); }
  [[nodiscard]] Registry& registry() { return registry_; }

  // An INFO of another node.
  void apply_info(std::string_view id, const Value& info);
  // `id` cannot be reached, or has left: nothing if it is offline already.
  void set_offline(std::string_view id, bool unexpected);

  // The same for a discovery that has brought the catalog up to date itself.
  void info_applied(const InfoOutcome& outcome);
  void went_offline(Node& node, bool unexpected);
  // Drops an offline node for good.
  void forget(std::string_view id) { nodes().forget(id); }

  // The local service list is another one: raises our seq.
  void set_local_services(Value services);
  // What INFO says of this node, without ver and sender.
  [[nodiscard]] Value self_info() const;

 private:
  EventLoop& loop_;
  Registry& registry_;
  std::size_t nodes_max_;
  Listener& listener_;
  Logger log_;
  Throttle full_;  // Log lines that peers provoke.
  Throttle complaints_;
};

// A way to find other nodes and to tell them of this one.
class Discovery {
 public:
  virtual ~Discovery() = default;
  // The transporter is ready.
  virtual void start() = 0;
  // The local service list changed (Membership::set_local_services has been called): tell everyone.
  virtual void announce() = 0;
  // Leaves, with a goodbye to the others or without a word. Nothing happens afterwards.
  virtual void stop(bool goodbye) = 0;
  // DISCOVER, INFO, DISCONNECT, HEARTBEAT or a gossip packet.
  virtual void on_control(PacketType type, std::string_view sender, const Value& body,
                          std::string_view remote_host) = 0;
  virtual void on_node_sighted(std::string_view node, const SocketAddress& address, bool listed) = 0;
  // The link to `node` broke, or could not be made: `refused` if nobody listens where it did.
  virtual void on_node_lost(std::string_view node, bool refused) = 0;
  // `node` stands, but does not answer: out of rotation with it, until it does.
  virtual void on_node_hung(std::string_view node) = 0;
  // `nodes` are slow to answer: where others can be told, let them ask for themselves.
  virtual void tell_suspects(const std::vector<std::string>& nodes) = 0;
  // The bus is back.
  virtual void on_reconnected() = 0;
};

}  // namespace weft
