#include "weft/sim.h"

#include <cstdlib>
#include <iostream>

using namespace std::chrono_literals;

namespace {

// The code under test: an order is a charge and a piece of stock, and is told to everyone.
class Shop : public weft::Service {
 public:
  Shop() : Service("shop") { action("order", &Shop::order); }
  weft::Task<std::string> order(weft::Context& context) {
    co_await context.call("bank.charge", context.params);
    // Short enough for another warehouse to be asked in what is left of the order's own time.
    const std::string from =
        co_await context.call<std::string>("stock.take", context.params, {.timeout = 200ms});
    context.emit("order.placed", {{"from", from}});
    co_return from;
  }
};

void expect(bool condition, const char* what) {
  if (!condition) std::cout << "FAILED: " << what << "\n", std::exit(1);
}

}  // namespace

// Five nodes and a partition that leaves the shop one warehouse of three.
int main() {
  weft::BrokerOptions options;
  options.request_timeout = 1s;
  options.retry = {.enabled = true, .retries = 3, .delay = 20ms};
  weft::sim::Cluster cluster({.seed = 7, .carrier = weft::sim::Carrier::kTcp, .broker = options});
  int charges = 0;
  cluster.add("bank").offer(
      "bank", [&](weft::Service& fake) { fake.action("charge", [&](weft::Context&) { ++charges; }); });
  for (const char* name : {"stock-1", "stock-2", "stock-3"}) {
    cluster.add(name).offer("stock", [](weft::Service& fake) {
      fake.action("take", [](weft::Context& context) { return context.broker().node_id(); });
    });
  }
  cluster.add("shop").offer<Shop>();
  cluster.record("order.*");
  cluster.start();

  cluster.partition({"stock-1", "stock-2"});
  for (int i = 0; i < 10; ++i) {
    const std::string from = cluster.await(cluster["shop"].call<std::string>("shop.order"));
    expect(from == "stock-3", "the warehouse on this side serves");
  }
  expect(charges == 10, "every order is charged once");
  expect(cluster.until([&] { return cluster.count("order.placed") == 10; }), "every order is told");
  cluster.heal();
  expect(cluster.until([&] { return cluster.sees("shop", "stock-1"); }), "the shop finds the others again");
  std::cout << "10 orders, " << weft::to_ms(cluster.elapsed()) / 1000 << " s of virtual time\n";
}
