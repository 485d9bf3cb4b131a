// Two nodes in one process, typed params and results, a call from inside a handler, and an error that
// travels.

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "weft/weft.h"

namespace {

struct AddParams {
  std::int64_t a = 0, b = 0;
};
WEFT_FIELDS(AddParams, a, b)

struct Bill {
  std::string customer;
  std::int64_t total = 0;
};
WEFT_FIELDS(Bill, customer, total)

// The name of an action with its types: params of another type do not compile.
inline constexpr weft::Action<AddParams, std::int64_t> kAdd{"math.add"};

class Math : public weft::Service {
 public:
  Math() : Service("math") { action("add", &Math::add); }
  std::int64_t add(weft::Context&, const AddParams& p) { return p.a + p.b; }
};

class Shop : public weft::Service {
 public:
  Shop() : Service("shop") {
    depends_on("math");
    action("bill", &Shop::bill);
  }
  // Runs on one node and calls another: a coroutine that waits without blocking the thread.
  weft::Task<Bill> bill(weft::Context& context) {
    Bill bill;
    bill.customer = context.params.value()["customer"].str_or("");
    if (bill.customer.empty()) throw weft::ClientError("Whose bill?", 400, "NO_CUSTOMER");
    bill.total = co_await context.call(kAdd, {19, 23});
    co_return bill;
  }
};

weft::Task<void> visit(weft::Broker& broker) {
  const Bill bill = co_await broker.call<Bill>("shop.bill", {{"customer", "Ann"}});
  std::cout << bill.customer << " pays " << bill.total << "\n";

  // The twin of call() without exceptions.
  const auto refused = co_await broker.try_call("shop.bill");
  std::cout << "refused by node " << refused.error().node_id() << ": " << refused.error().message() << " ("
            << refused.error().code() << " " << refused.error().type() << ")\n";
}

}  // namespace

int main() {
  const auto buses = std::make_shared<weft::MemoryBuses>();  // Where nodes of this process meet.
  const auto options = [&](std::string id) {
    return weft::AppOptions{.node_id = std::move(id),
                            .transporter = "memory://",
                            .log_level = weft::LogLevel::kWarn,
                            .memory = buses};
  };
  weft::App first(options("first"));
  first.add<Math>();
  weft::App second(options("second"));
  second.add<Shop>();

  first.start();
  second.start();  // Has ended when the shop has found its math.
  first.run_on_loop([](weft::Broker& broker) -> weft::Task<void> {
    co_await broker.wait_for_services("shop", std::chrono::seconds(5));
    co_await visit(broker);
  });
}
