// A strategy of one's own: the node of the lowest rank takes every call, the others stand by.

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>

#include "weft/weft.h"

namespace {

class LowestRank : public weft::Strategy {
 public:
  const weft::Endpoint* select(std::span<const weft::Endpoint* const> endpoints,
                               const weft::Selection&) override {
    return *std::ranges::min_element(endpoints, {}, [](const weft::Endpoint* endpoint) {
      return endpoint->node->metadata["rank"].i64_or(1000);
    });
  }
};

std::shared_ptr<weft::Service> ledger() {
  auto service = std::make_shared<weft::Service>("ledger");
  service->action("book", [](weft::Context& context) { return context.broker().node_id(); });
  return service;
}

weft::Task<void> book(weft::Broker& broker) {
  const auto node = co_await broker.call<std::string>("ledger.book");
  std::cout << "booked by " << node << "\n";
}

}  // namespace

int main() {
  const auto buses = std::make_shared<weft::MemoryBuses>();
  const auto options = [&](std::string id, int rank) {
    return weft::AppOptions{.node_id = std::move(id),
                            .transporter = "memory://",
                            .metadata = {{"rank", rank}},
                            .log_level = weft::LogLevel::kWarn,
                            .memory = buses};
  };
  weft::App standby(options("standby", 2));
  standby.add_service(ledger());
  weft::App primary(options("primary", 1));
  primary.add_service(ledger());

  auto caller_options = options("caller", 3);
  caller_options.broker.strategies["LowestRank"] = [](const weft::StrategyContext&) {
    return std::make_unique<LowestRank>();
  };
  caller_options.broker.registry.strategy = "LowestRank";
  weft::App caller(std::move(caller_options));

  standby.start();
  primary.start();
  caller.start();
  caller.run_on_loop([](weft::Broker& broker) -> weft::Task<void> {
    while (broker.node_list().size() < 3) co_await broker.sleep(std::chrono::milliseconds(5));
    for (int i = 0; i < 2; ++i) co_await book(broker);
  });
  primary.stop();
  caller.run_on_loop(book);
}
