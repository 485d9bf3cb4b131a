#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "broker/call.h"
#include "broker/calls/canary.h"
#include "broker/calls/endpoint_guards.h"
#include "broker/calls/pending_requests.h"
#include "broker/calls/prober.h"
#include "broker/calls/retry.h"
#include "broker/context.h"
#include "broker/dispatch/dispatcher.h"
#include "broker/dispatch/idempotency_table.h"
#include "broker/options.h"
#include "broker/registry/registry.h"
#include "lib/base/function_ref.h"
#include "lib/base/life.h"
#include "lib/loop/event_loop.h"
#include "lib/protocol/packet.h"
#include "lib/random/random.h"

namespace weft {

// Sends requests to other nodes. Implemented by Transit.
class RequestSender {
 public:
  [[nodiscard]] virtual Result<> send_request(std::string_view node, const RequestPacket& packet) = 0;
  // Balanced mode: the transporter chooses the node.
  [[nodiscard]] virtual Result<> send_balanced_request(const RequestPacket& packet) = 0;

 protected:
  ~RequestSender() = default;
};

class CallEngine;

// How an attempt lost its node: not at all, with the node, or before it came to it.
enum class Loss : std::uint8_t { kNone, kNodeLost, kUndelivered };

// One call of this node from its making to its end: its attempts, its deadline, its outcome.
class CallRecord final : public detail::CallState {
 public:
  explicit CallRecord(CallEngine& engine) : engine_(&engine) {}

 private:
  friend class CallEngine;
  void recycle() override;

  CallEngine* engine_;              // Null once it is gone.
  CallRecord* previous_ = nullptr;  // In the engine's list of records that someone holds.
  CallRecord* next_ = nullptr;
  std::string action_;
  Payload params_;
  Payload meta_;
  Value headers_;
  std::string direct_node_;
  std::string request_id_;
  std::string parent_id_;
  std::string caller_;
  int level_ = 1;
  std::optional<bool> tracing_;
  Instant deadline_ = kNever;  // The calling context's: no attempt outlives it.
  std::optional<Duration> timeout_;
  std::optional<Value> fallback_;
  bool tracked_ = true;

  RetryState retry_;
  std::uint32_t attempt_ = 0;  // What comes back for an earlier one is late and passed over.
  EventLoop::TimerId timer_ = 0;
  std::optional<std::uint32_t> slot_;  // Its place among the pending requests.
  Node* node_ = nullptr;               // That it waits for; null in balanced mode.
  std::string node_id_;
  bool watched_ = false;  // The canary counts it.
  Flight flight_;         // Counts this attempt at its endpoint.
  int undelivered_ = 0;   // Attempts that came to nobody.

  EndpointGuards::Watch guard_;     // Of this attempt; empty when the endpoint is not guarded.
  bool counted_ = false;            // Its first try is in the action's budgets.
  bool reached_ = false;            // This attempt was handed to a node (or handler).
  bool timed_ = false;              // How long it takes is of interest.
  bool wants_node_ = false;         // The caller asks who answered.
  Instant begun_{};                 // Of this attempt, if timed_.
  Instant expires_ = kNever;        // Its time runs out.
  std::string avoid_;               // The node that has failed it, until others have as well.
  std::uint64_t run_ = 0;           // Of a handler here that runs on.
  LocalAction* serving_ = nullptr;  // Of run_, or of a handler that has just ended …
  Context* context_ = nullptr;      // … whose context this is, for its fallback; null otherwise.

  // What few calls have.
  struct Extras {
    std::function<Value(const Error&)> fallback;
    std::optional<Duration> hedge_after;
    double hedge_quantile = 0;
    EventLoop::TimerId hedge_timer = 0;
    CallRef hedge;                        // The same call of another node, while it is under way.
    std::optional<Result<Payload>> held;  // This one's failure meanwhile …
    Loss held_loss = Loss::kNone;         // … and why.
  };
  std::unique_ptr<Extras> extras_;
  [[nodiscard]] bool may_hedge() const {
    return extras_ != nullptr && (extras_->hedge_after || extras_->hedge_quantile > 0);
  }
  // Whether params and ids are needed after this attempt has taken them.
  [[nodiscard]] bool needs_params() const { return retry_.may_retry() || may_hedge(); }
};

// Makes calls: picks an endpoint, runs the action here or sends a request, and ends the call with a result,
// an error, the loss of the node or the deadline; or picks again when the failure may be tried again.
//
// Calls may be held beyond its life: they just never end then. Thread: loop thread only.
class CallEngine {
 public:
  struct Parts {
    Broker& broker;
    EventLoop& loop;
    Random& random;
    Registry& registry;
    Dispatcher& dispatcher;
    RequestSender* sender;  // Null without a transporter.
    const BrokerOptions& options;
    Logger log;
    Canary* canary = nullptr;             // Over a bus.
    Prober* prober = nullptr;             // With a transporter.
    IdempotencyTable* repeats = nullptr;  // Null: keys are passed over.
    // Local events of the endpoints' guards.
    std::function<void(std::string_view event, Value payload)> publish;
  };
  explicit CallEngine(Parts parts);
  ~CallEngine();

  // Starts a call; its outcome comes to the CallRef, perhaps before start() returns. `parent` may be null.
  [[nodiscard]] CallRef start(std::string_view action, Params&& params, const CallOptions& options,
                              Context* parent);

  // A response came. False: nobody waits for it.
  bool on_response(const ResponsePacket& packet);
  // `node` is gone: everything in flight to it is decided now.
  void on_node_lost(const Node& node);
  // `node` is out of rotation but may still answer: what may be tried elsewhere is, the rest waits on.
  void on_node_hung(const Node& node);
  // The bus was lost: no answer that is on its way will come.
  void on_disconnected();
  // The bus says that nobody took a request. Its node is to be lost in this turn.
  void on_undelivered(std::string_view id);

  // A caller's word on an endpoint.
  void report(std::string_view action, std::string_view node, CallOutcome outcome) {
    guards_.report(action, node, outcome);
  }

  [[nodiscard]] std::size_t pending_requests() const { return pending_.size(); }
  // Calls under way that stop() waits for.
  [[nodiscard]] std::size_t active_calls() const { return active_; }
  void when_idle(UniqueFunction<void()> callback);
  // New calls fail at once with `error` from now on; those under way end with it, whatever they wait for.
  void shut_down(const Error& error);

 private:
  friend class CallRecord;
  [[nodiscard]] CallRecord& make_record();
  void attempt(CallRecord& call);
  void note_first_try(CallRecord& call, ActionList& list);
  void place(CallRecord& call, ActionList& list, ActionEndpoint& endpoint, Duration timeout);
  void run_local(CallRecord& call, ActionEndpoint& endpoint, Duration timeout);
  void run_local_inline(CallRecord& call, LocalAction& action, Duration timeout, const std::string& key);
  // Whether the call repeats one that this node has served or is serving. `key` is empty without one.
  [[nodiscard]] bool is_repeat(CallRecord& call, const std::string& key, Duration timeout);
  void send_remote(CallRecord& call, Node* node, Duration timeout);
  void end_attempt(CallRecord& call, Result<Payload> result, Loss loss = Loss::kNone);
  // Whether a failed attempt is followed by another one.
  void decide(CallRecord& call, Result<Payload> result, Loss loss);
  // Picks again once this turn is over: what is being lost right now may still be in the lists.
  void attempt_again(CallRecord& call);
  void finish(CallRecord& call, Result<Payload> result);
  [[nodiscard]] Result<Payload> recover(CallRecord& call, const Error& error);
  [[nodiscard]] bool grant_retry(CallRecord& call, bool node_lost);
  [[nodiscard]] CallOutcome outcome_of(const CallRecord& call, const Result<Payload>& result) const;
  // hedging.cpp
  void arm_hedge(CallRecord& call);
  void start_hedge(CallRecord& call);
  void on_hedge_done(CallRecord& call);
  void cancel_hedge(CallRecord& call);
  void abandon(CallRecord& call);
  void arm_timer(CallRecord& call, Duration timeout);
  void drop_request(CallRecord& call);
  [[nodiscard]] Duration timeout_of(const CallRecord& call, const ActionList* list) const;
  void fill_context(CallRecord& call, Context& context, LocalAction& action, Duration timeout);
  void note_local_outcome(CallRecord& call, Context& context);
  void remember(const std::string& key, const Result<Payload>& result, Context& context);
  void link(CallRecord& call);
  void unlink(CallRecord& call);
  [[nodiscard]] std::vector<CallRef> calls_under_way() const;
  // Ends the attempts in flight that are `lost`, as on a node that was lost.
  void reject(FunctionRef<bool(const CallRecord&)> lost);

  Parts parts_;
  EndpointGuards guards_;
  PendingRequests pending_;
  std::vector<std::unique_ptr<CallRecord>> pool_;
  CallRecord* first_ = nullptr;  // Of the records that someone holds.
  std::size_t active_ = 0;
  std::optional<Error> shut_down_;
  UniqueFunction<void()> when_idle_;
  Life life_;
};

}  // namespace weft
