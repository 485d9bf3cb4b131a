// Two nodes that meet on a NATS server, with a balancer of their own or with that of NATS.
//
//   nats_mesh [URL [balanced]]        URL: nats://127.0.0.1:4222

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "weft/weft.h"

namespace {

weft::AppOptions options(std::string id, const std::string& url, bool balanced) {
  weft::AppOptions made;
  made.node_id = std::move(id);
  made.name_space = "nats-mesh";
  made.transporter = url;
  made.log_level = weft::LogLevel::kWarn;
  made.nats.connect_timeout = std::chrono::seconds(1);
  made.broker.disable_balancer = balanced;  // Requests go to queue groups: the server chooses who gets one.
  return made;
}

weft::Task<void> call_clock(weft::Broker& broker) {
  co_await broker.wait_for_services("clock", std::chrono::seconds(5));
  for (int i = 1; i <= 3; ++i) {
    const weft::Value answer = co_await broker.call("clock.tick", {{"count", i}});
    std::cout << answer["node"].str() << " ticks " << answer["count"].i64() << "\n";
  }
  const auto pong = co_await broker.ping("clock-node");
  std::cout << (pong ? "clock-node is near" : "clock-node is away") << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "nats://127.0.0.1:4222";
  const bool balanced = argc > 2 && std::string_view(argv[2]) == "balanced";
  try {
    weft::App worker(options("clock-node", url, balanced));
    auto clock = std::make_shared<weft::Service>("clock");
    clock->action("tick", [](weft::Context& context) {
      return weft::Value{{"node", context.broker().node_id()}, {"count", context.params.value()["count"]}};
    });
    worker.add_service(std::move(clock));
    weft::App caller(options("caller-node", url, balanced));
    worker.start();
    caller.start();
    caller.run_on_loop(call_clock);
  } catch (const weft::Exception& error) {
    std::cerr << "nats_mesh: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
