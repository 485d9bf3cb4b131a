#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/error/result.h"
#include "lib/loop/event_loop.h"
#include "lib/net/network.h"

namespace weft {

// Turns host names into numeric addresses, in the system's order of preference, on threads of its own: a name
// server that does not answer holds up neither blocking work nor the end of the process.
//
// Thread: the loop's. Destroying it forgets all lookups; their callbacks are destroyed unrun.
class Resolver {
 public:
  using Callback = UniqueFunction<void(Result<std::vector<std::string>>)>;
  using LookupId = std::uint64_t;

  explicit Resolver(EventLoop& loop);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // `done` runs later on the loop's thread. The list is never empty.
  LookupId resolve(const std::string& host, Callback done);
  void cancel(LookupId lookup);

  // The same, waited for: for the few names that are needed before anything runs.
  [[nodiscard]] static Result<std::vector<std::string>> resolve_now(const std::string& host);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weft
