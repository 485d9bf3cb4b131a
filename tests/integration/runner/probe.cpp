// The module of runner_test.py: a service, or what may go wrong with one, as the environment says in PROBE.

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "weft/module.h"
#include "weft/weft.h"

namespace {

std::string wanted() {
  const char* word = std::getenv("PROBE");
  return word == nullptr ? "" : word;
}

struct ThrowsWhenLoaded {
  ThrowsWhenLoaded() {
    if (wanted() == "load") throw std::runtime_error("no tea while loading");
  }
} throws_when_loaded;

struct WaitParams {
  std::int64_t ms = 0;
};
WEFT_FIELDS(WaitParams, ms)

class Probe : public weft::Service {
 public:
  Probe() : Service("probe") {
    action("wait", &Probe::wait);
    action("whoami", [](weft::Context& context) { return context.broker().node_id(); });
  }
  void created() override {
    if (wanted() == "create") throw weft::ServerError("no tea when created");
  }
  weft::Task<void> started() override {
    if (wanted() == "start") throw weft::ServerError("no tea when started");
    co_return;
  }

  weft::Task<std::string> wait(weft::Context& context, WaitParams params) {
    std::puts("waiting");
    std::fflush(stdout);
    co_await context.broker().sleep(std::chrono::milliseconds(params.ms));
    co_return "waited";
  }
};

}  // namespace

WEFT_MODULE(services) {
  if (wanted() == "register") throw std::runtime_error("no tea today");
  if (wanted() == "number") throw 42;
  services.add<Probe>();
  if (wanted() == "twice") services.add<Probe>();
}
