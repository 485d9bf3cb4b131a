#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "broker/registry/registry.h"
#include "lib/loop/event_loop.h"

namespace weft {

// Finds out, over a bus, that a node which owes answers is gone: a request that the server had already
// written to the dying socket is neither answered nor reported. So while a node owes answers and has been
// silent, a canary is sent to it now and then; the bus reports it undelivered when nobody is there any more.
//
// Measured over NATS: the report comes 4 ms (at most 14) after the process died. Thread: loop thread only.
class Canary {
 public:
  static constexpr Duration kSilence =
      std::chrono::milliseconds(50);  // Before the first canary, and between two.

  Canary(EventLoop& loop, std::function<void(std::string_view node)> send)
      : loop_(loop), send_(std::move(send)) {}

  void on_request_sent(std::string_view node);
  // A request to `node` has ended, however it did.
  void on_request_ended(std::string_view node);
  // No canary flies any more.
  void stop() { timer_.cancel(); }
  // Anything came from `node`.
  void on_heard(std::string_view node);

 private:
  struct Debtor {
    std::uint32_t owed = 0;
    Instant quiet_since{};  // Heard from, first asked, or last sent a canary.
  };
  void arm();
  void look();

  EventLoop& loop_;
  std::function<void(std::string_view node)> send_;
  std::unordered_map<std::string, Debtor, StringHash, std::equal_to<>> debtors_;
  Timer timer_;
};

}  // namespace weft
