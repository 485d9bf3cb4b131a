// Events: balanced within a group, broadcast to everyone, caught by patterns; and the node's own events.

#include <chrono>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "weft/weft.h"

namespace {

using namespace std::chrono_literals;

// Each node runs on a thread of its own: whole lines only.
void say(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::cout << line << std::endl;
}

// Of each group one instance gets an emitted event. The group is the service's name unless it says otherwise.
class Mailer : public weft::Service {
 public:
  Mailer() : Service("mailer") { event("order.created", &Mailer::on_order); }
  void on_order(weft::Context& context) {
    say(broker().node_id() + ": mail about order " + std::to_string(context.params.value()["id"].i64()));
  }
};

// '*' stands for one part of the name, "**" for any number of them.
class Audit : public weft::Service {
 public:
  Audit() : Service("audit") {
    event("order.*", [this](weft::Context& context) {
      say(broker().node_id() + ": audit of " + std::string(context.event()) + " from " +
          std::string(context.node_id()));
    });
  }
};

weft::Task<void> tell(weft::Broker& broker) {
  co_await broker.wait_for_services({"mailer", "audit"}, 5s);
  say("-- two orders: each goes to one of the two mailers, and to the one audit");
  broker.emit("order.created", {{"id", 1}});
  broker.emit("order.created", {{"id", 2}});
  co_await broker.sleep(200ms);  // So that the lines come in order.
  say("-- a broadcast goes to every instance");
  broker.broadcast("order.created", {{"id", 3}});
  co_await broker.sleep(200ms);
  say("-- an event for one group alone");
  const std::string_view groups[] = {"audit"};
  broker.emit("order.paid", {{"id", 1}}, {.groups = groups});
  co_await broker.sleep(200ms);
}

}  // namespace

int main() {
  const auto buses = std::make_shared<weft::MemoryBuses>();
  const auto options = [&](std::string id) {
    return weft::AppOptions{.node_id = std::move(id),
                            .transporter = "memory://",
                            .log_level = weft::LogLevel::kWarn,
                            .memory = buses};
  };
  weft::App shop(options("shop"));
  const weft::LocalListener listener =
      shop.broker().on_local("$node.connected", [](std::string_view, const weft::Value& payload) {
        say("shop: node " + std::string(payload["node"]["id"].str_or("?")) + " is here");
      });
  weft::App first(options("node-1"));
  first.add<Mailer>();
  weft::App second(options("node-2"));
  second.add<Mailer>();
  second.add<Audit>();

  shop.start();
  first.start();
  second.start();
  shop.run_on_loop(tell);
}
