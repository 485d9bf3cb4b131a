// Many brokers over real sockets.

#include <doctest/doctest.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "lib/uv/uv_runtime.h"
#include "tests/support/run_task.h"
#include "transporters/tcp/tcp_transporter.h"

namespace weft {

using namespace std::chrono_literals;

namespace {

// Of this process alone: how long it would have taken on a machine of its own.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

TEST_SUITE("many brokers") {
  TEST_CASE("fifty that know one of them see each other over TCP within three seconds") {
    constexpr std::size_t kCount = 50;
    UvRuntime world;
    std::vector<std::unique_ptr<Broker>> brokers;
    Value urls;
    TcpTransporter* first = nullptr;
    const auto add = [&] {
      TcpOptions tcp;
      tcp.udp_discovery = false;
      tcp.host = "127.0.0.1";
      tcp.use_hostname = false;
      tcp.urls = urls;
      auto transporter =
          std::make_unique<TcpTransporter>(world.loop(), world.services().network, Logger(), tcp);
      if (first == nullptr) first = transporter.get();
      BrokerOptions options;
      options.node_id = "n" + std::to_string(brokers.size());
      options.log_level = LogLevel::kError;
      options.gossip.use_hostname = false;
      options.registry.stop_delay = 0s;
      brokers.push_back(
          std::make_unique<Broker>(world.services(), std::move(options), std::move(transporter)));
      brokers.back()->add_service(std::make_shared<Service>("s" + std::to_string(brokers.size() - 1)));
    };
    test::run_task(
        world,
        [&]() -> Task<void> {
          add();
          co_await brokers[0]->start();
          urls = Value("127.0.0.1:" + std::to_string(first->listen_address().port) + "/n0");
          while (brokers.size() < kCount) add();
          const double wall = wall_seconds();
          const double cpu = cpu_seconds();
          for (std::size_t i = 1; i < kCount; ++i) {
            brokers[0]->spawn([&brokers, i]() -> Task<void> { co_await brokers[i]->start(); });
          }
          std::vector<std::string> all;
          for (std::size_t i = 0; i < kCount; ++i) all.push_back("s" + std::to_string(i));
          for (std::size_t i = 0; i < kCount; ++i) co_await brokers[i]->wait_for_services(Names(all), 60s);
          const double took = std::min(wall_seconds() - wall, cpu_seconds() - cpu);
          MESSAGE("fifty brokers in ", wall_seconds() - wall, " s, ", cpu_seconds() - cpu, " s of them busy");
          CHECK(took <= 3);
          for (auto& broker : brokers) co_await broker->stop();
        },
        100s);
  }
}

}  // namespace weft
