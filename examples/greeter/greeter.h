#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "weft/weft.h"

namespace greeter {

struct HelloParams {
  std::string name;
  std::optional<std::int64_t> ms;  // How long to think before the answer.
};
WEFT_FIELDS(HelloParams, name, ms)

// What a worker answers: the greeting, and who it was.
struct Hello {
  std::string text;
  std::string node;
  std::string zone;
};
WEFT_FIELDS(Hello, text, node, zone)

// Says hello, and which worker said it.
class Greeter final : public weft::Service {
 public:
  Greeter() : Service("greeter") {
    action("hello", &Greeter::hello);
    // Counts its visitors in memory, so a name must always come to the same worker: callers place calls of
    // this action by the name, whatever their own strategy.
    action("visit", &Greeter::visit,
           {.strategy = "Shard", .strategy_options = weft::Value{{"shardKey", "name"}}});
  }

  weft::Task<Hello> hello(weft::Context& context, HelloParams params) {
    if (params.ms) co_await context.broker().sleep(std::chrono::milliseconds(*params.ms));
    co_return answer("Hello " + params.name + "!");
  }

  Hello visit(weft::Context&, const HelloParams& params) {
    const int times = ++visits_[params.name];
    return answer("Hello " + params.name + ", visit " + std::to_string(times) + "!");
  }

 private:
  Hello answer(std::string text) const {
    const std::string_view zone = broker().options().metadata["zone"].str_or({});
    return {std::move(text), broker().node_id(), std::string(zone)};
  }

  std::map<std::string, int> visits_;
};

}  // namespace greeter
