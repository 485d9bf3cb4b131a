#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/call_options.h"
#include "broker/context.h"
#include "broker/dispatch/dispatcher.h"
#include "broker/dispatch/served_load.h"
#include "broker/events/local_bus.h"
#include "broker/options.h"
#include "broker/params.h"
#include "broker/registry/registry.h"
#include "lib/loop/event_loop.h"
#include "lib/protocol/packet.h"
#include "lib/protocol/serializer.h"
#include "lib/time/throttle.h"

namespace weft {

// Sends events to other nodes. Implemented by Transit.
class EventSender {
 public:
  [[nodiscard]] virtual Result<> send_event(std::string_view node, const EventPacket& packet) = 0;
  [[nodiscard]] virtual Result<> send_balanced_event(std::string_view group, const EventPacket& packet) = 0;
  // As it came, sender and all.
  [[nodiscard]] virtual Result<> forward_event(std::string_view node, const EventPacket& packet) = 0;

 protected:
  ~EventSender() = default;
};

// Emits, broadcasts and receives events: who gets one, and the running of this node's handlers.
//
// An emitted event goes to one endpoint of each group. A node that subscribes to it by several patterns of a
// group gets one packet for all of them, and patterns that lie on different nodes are never run twice.
// Thread: loop thread only.
class EventEngine {
 public:
  struct Parts {
    Broker& broker;
    EventLoop& loop;
    Registry& registry;
    Dispatcher& dispatcher;
    EventSender* sender;  // Null without a transporter.
    LocalBus& local_bus;
    ServedLoad& load;
    const Serializer* serializer;
    bool balanced_by_transporter = false;
    Logger log;
    std::function<void(const Error&)> on_refused;  // A handler's queue was full.
  };
  explicit EventEngine(Parts parts) : parts_(std::move(parts)) {}

  void send(EventType type, std::string_view event, Params&& payload, const EventOptions& options,
            Context* parent);
  // `is_balanced`: the bus chose this node, perhaps for a subscription that is wider than the pattern behind
  // it. An event that nothing here means goes to a node of the group that does.
  void receive(const EventPacket& packet, bool is_balanced);

 private:
  // An event on its way to handlers of this node; views live during the call.
  struct Delivery {
    EventType type;
    std::string_view event;
    const Payload& data;
    Payload groups;
    const Payload& meta;
    Payload headers;
    std::string_view id;
    std::string_view request_id;
    std::string_view parent_id;
    std::string_view caller;
    std::string_view sender;
    int level;
    std::optional<bool> tracing;
  };

  void emit(Delivery& delivery, std::span<const std::string_view> groups);
  void emit_balanced(Delivery& delivery, std::span<const std::string_view> groups);
  void broadcast(Delivery& delivery, std::span<const std::string_view> groups);
  void broadcast_local(const Delivery& delivery, std::span<const std::string_view> groups,
                       bool served = false);
  void hand_on(const EventPacket& packet, std::span<const std::string_view> groups);
  // `served`: for another node, so within the limits of what is served.
  void run(const std::shared_ptr<LocalSubscription>& subscription, const Delivery& delivery,
           bool served = false);
  void fill(Context& context, const Delivery& delivery);
  [[nodiscard]] EventPacket packet_of(const Delivery& delivery, Payload groups, bool is_broadcast,
                                      std::string_view id);
  void note_failure(const LocalSubscription& subscription, std::string_view event, const Error& error);

  Parts parts_;
  Throttle dropped_;  // Log lines about events there was no room for.
};

}  // namespace weft
