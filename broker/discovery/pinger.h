#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "broker/discovery/control_sender.h"
#include "broker/discovery/pong.h"
#include "lib/loop/event_loop.h"
#include "lib/loop/signal.h"
#include "lib/loop/task.h"

namespace weft {

// Measures round trips: sends PINGs, matches PONGs, answers the PINGs of others. Thread: loop thread only.
class Pinger {
 public:
  Pinger(EventLoop& loop, ControlSender& sender) : loop_(loop), sender_(sender) {}

  // Nothing when no answer came in time.
  Task<std::optional<Pong>> ping(std::string node_id, std::string id, Duration timeout);
  // A PING that nobody waits for: its PONG shows in on_pong() alone.
  void probe(std::string_view node_id, std::string_view id);

  // Pings under way end without an answer.
  void stop();

  void on_ping(std::string_view sender, const Value& body);
  // The measured answer, or nothing for a PONG that makes no sense.
  std::optional<Pong> on_pong(std::string_view sender, const Value& body);

 private:
  struct Sent {
    Instant at;
    bool awaited;  // By a ping(), which forgets it; others are forgotten when they are old.
    std::optional<Pong> answer;
  };
  void forget_old();

  EventLoop& loop_;
  ControlSender& sender_;
  std::map<std::string, Sent, std::less<>> sent_;  // By id.
  Signal answered_;
  bool stopped_ = false;
};

}  // namespace weft
