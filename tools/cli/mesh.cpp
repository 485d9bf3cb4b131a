#include "tools/cli/mesh.h"

#include <algorithm>
#include <chrono>

#include "tools/cli/catalog.h"

namespace weft::cli {

namespace {

using namespace std::chrono_literals;

// Nodes tell one another of everyone they know, and on a bus all answer at once: who is silent for so long
// after the last news has nothing more to tell.
constexpr Duration kQuiet = 300ms;

}  // namespace

Mesh::Mesh(Broker& broker, const MeshOptions& options, Instant deadline)
    : broker_(broker), wait_(options.wait), deadline_(deadline), began_(broker.now()), last_news_(began_) {
  for (const char* event : {"$node.*", "$services.changed"}) {
    listeners_.push_back(broker.on_local(event, [this](std::string_view, const Value&) {
      last_news_ = broker_.now();
      // Not from within the registry that is changing.
      broker_.runtime().loop.defer(life_.guard([this] { news_.notify(); }));
    }));
  }
}

bool Mesh::anyone() const {
  const Value rows = broker_.node_list(false, true);
  const auto items = rows.items();
  return std::any_of(items.begin(), items.end(), [this](const Value& row) { return is_worker(row, self()); });
}

Task<bool> Mesh::settle() {
  EventLoop& loop = broker_.runtime().loop;
  while (true) {
    const Instant now = loop.now();
    const bool found = anyone();
    const Instant end = std::min(deadline_, found ? std::max(last_news_, began_) + kQuiet : began_ + wait_);
    if (now >= end) co_return found;
    (void)co_await news_.wait(loop, end);
  }
}

Task<bool> Mesh::until(FunctionRef<bool()> ready, FunctionRef<bool()> hopeless) {
  EventLoop& loop = broker_.runtime().loop;
  while (true) {
    if (ready()) co_return true;
    const Instant now = loop.now();
    const Instant quiet_at = std::max(last_news_, began_) + kQuiet;
    const bool quiet = now >= quiet_at;
    if (now >= deadline_ || (quiet && hopeless())) co_return false;
    (void)co_await news_.wait(loop, quiet ? deadline_ : std::min(deadline_, quiet_at));
  }
}

Duration Mesh::time_left() const {
  if (deadline_ == kNever) return Duration::zero();
  return std::max<Duration>(deadline_ - broker_.now(), 1ms);
}

}  // namespace weft::cli
