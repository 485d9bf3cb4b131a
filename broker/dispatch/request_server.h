#pragma once

#include <string>
#include <string_view>

#include "broker/dispatch/dispatcher.h"
#include "broker/dispatch/idempotency_table.h"
#include "broker/dispatch/served_load.h"
#include "broker/registry/registry.h"
#include "lib/base/life.h"
#include "lib/base/log.h"
#include "lib/loop/event_loop.h"
#include "lib/protocol/packet.h"
#include "lib/protocol/serializer.h"
#include "lib/time/clock.h"

namespace weft {

// Answers requests. Implemented by Transit.
class ResponseSender {
 public:
  virtual void send_response(std::string_view node, const ResponsePacket& packet) = 0;

 protected:
  ~ResponseSender() = default;
};

// Serves requests of other nodes: finds the action here, runs it, answers once.
//
// A plain handler runs in line, on the packet's own bytes. Thread: loop thread only.
class RequestServer {
 public:
  struct Parts {
    Broker& broker;
    EventLoop& loop;
    Registry& registry;
    Dispatcher& dispatcher;
    ResponseSender& sender;
    const Serializer& serializer;
    ServedLoad& load;
    bool send_stack = false;
    Duration request_timeout{};  // Of requests that bring none, for actions without one; 0: none.
    Logger log;
    IdempotencyTable* repeats = nullptr;  // Null: keys are passed over.
  };
  explicit RequestServer(Parts parts) : parts_(std::move(parts)) {}

  void serve(const RequestPacket& packet);
  // `node` is gone: nobody waits for what still runs for it.
  void on_node_lost(std::string_view node) { parts_.dispatcher.request_stop_of(node); }
  // From now on requests are answered with ServiceNotAvailableError.
  void refuse_new() { refusing_ = true; }

 private:
  void fill(Context& context, const RequestPacket& packet, const LocalAction& action, Duration own_timeout);
  // Whether this is the repetition of a call that was served, or is being served. `key` is empty without one.
  [[nodiscard]] bool is_repeat(const RequestPacket& packet, const std::string& key);
  // `bytes` were taken from the load and are given back when it has ended.
  void run(const RequestPacket& packet, const std::shared_ptr<LocalAction>& action, Duration own_timeout,
           std::string key, std::size_t bytes);
  void answer(std::string_view node, std::string_view id, const Result<Payload>& result,
              const Context* context);
  void answer(std::string_view node, std::string_view id, const IdempotencyTable::Answer& answer);

  Parts parts_;
  bool refusing_ = false;
  Life life_;
};

}  // namespace weft
