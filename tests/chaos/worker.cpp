// The worker of the chaos tests: a module for weft-runner that does its work, or behaves as badly as it is
// told. tests/chaos/js holds its twin.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weft/module.h"
#include "weft/weft.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;

struct WorkParams {
  std::int64_t ms = 0;
};
WEFT_FIELDS(WorkParams, ms)

struct NotAnException {};

class Chaos final : public Service {
 public:
  Chaos() : Service("chaos") {
    action("work", &Chaos::work);
    action("safe", &Chaos::work, {.idempotent = true});
    action("block", &Chaos::block);
    action("block_later", &Chaos::block_later);
    action("block_well", &Chaos::block, {.blocking = true});
    action("foreign", [](Context&) { throw 42; });
    action("foreign_later", &Chaos::foreign_later);
    event("chaos.foreign", [](Context&) { throw NotAnException(); });
    // What this node sees of the others is told to whoever wants to know.
    event("$node.connected", [this](Context& c) { tell("seen.found", c); });
    event("$node.disconnected", [this](Context& c) { tell("seen.lost", c); });
  }

 private:
  Task<std::string> work(Context&, WorkParams p) {
    co_await broker().sleep(std::chrono::milliseconds(p.ms));
    co_return broker().node_id();
  }

  std::string block(Context&, const WorkParams& p) {
    burn(p.ms);
    return broker().node_id();
  }

  Task<std::string> block_later(Context&, WorkParams p) {
    co_await broker().sleep(1ms);
    burn(p.ms);
    co_return broker().node_id();
  }

  Task<void> foreign_later(Context&) {
    co_await broker().sleep(1ms);
    throw NotAnException();
  }

  void tell(std::string_view event, Context& c) {
    broker().broadcast(event, {{"node", c.params.value()["node"]["id"]}});
  }

  static void burn(std::int64_t ms) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (std::chrono::steady_clock::now() < end) {
    }
  }
};

// Fails while it starts, in the way that it is named after.
class Bomb final : public Service {
 public:
  explicit Bomb(std::string kind) : Service("bomb"), kind_(std::move(kind)) {
    action("work", [](Context&) { return "never"; });
  }

 private:
  Task<void> started() override {
    co_await broker().sleep(20ms);  // Others have seen this node by then.
    if (kind_ == "abort") std::abort();
    if (kind_ == "throw") throw std::runtime_error("the bomb went off");
    if (kind_ == "foreign") throw 42;
  }

  std::string kind_;
};

}  // namespace

WEFT_MODULE(services) {
  services.add<Chaos>();
  if (const char* kind = std::getenv("CHAOS_BOMB")) services.add<Bomb>(kind);
}
