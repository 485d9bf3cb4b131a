#include "broker/options.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "broker/broker.h"
#include "lib/sim/sim_runtime.h"

namespace weft {

using namespace std::chrono_literals;

namespace {

// What a broker with these options throws; empty if nothing.
std::string refusal(const std::function<void(BrokerOptions&)>& change) {
  SimWorld world(1);
  SimRuntime process(world, world.fabric().add_host());
  BrokerOptions options;
  options.node_id = "n";
  change(options);
  try {
    const Broker broker(process.runtime(), options);
  } catch (const BrokerOptionsError& error) {
    CHECK(error.code() == 500);
    CHECK(error.type() == "BROKER_OPTIONS_ERROR");
    return error.what();
  }
  return {};
}

}  // namespace

TEST_SUITE("broker options") {
  TEST_CASE("a bad option is refused with its name, its value and what is allowed") {
    struct Row {
      std::function<void(BrokerOptions&)> change;
      const char* name;
      const char* value;
      const char* allowed;
    };
    const Row rows[] = {
        {[](auto& o) { o.node_id = "a b"; }, "'node_id'", "\"a b\"", "blanks and the characters"},
        {[](auto& o) { o.node_id = "a*"; }, "'node_id'", "\"a*\"", "*>|/,"},
        {[](auto& o) { o.node_id = "a|b"; }, "'node_id'", "\"a|b\"", "not allowed"},
        {[](auto& o) { o.node_id = std::string(201, 'x'); }, "'node_id'", "201", "at most 200"},
        {[](auto& o) { o.name_space = "a|b"; }, "'name_space'", "\"a|b\"", "not allowed"},
        {[](auto& o) { o.name_space = "a\nb"; }, "'name_space'", "a\nb", "not allowed"},
        {[](auto& o) { o.metadata = Value("x"); }, "'metadata'", "string", "must be an object"},
        {[](auto& o) { o.serializer = "Avro"; }, "'serializer'", "Avro", "JSON, MsgPack"},
        {[](auto& o) { o.request_timeout = -1ms; }, "'request_timeout'", "-1 ms", "0 or more"},
        {[](auto& o) { o.max_call_level = -2; }, "'max_call_level'", "-2", "0 (no limit) or more"},
        {[](auto& o) { o.retry.retries = -1; }, "'retry.retries'", "-1", "0 or more"},
        {[](auto& o) { o.retry.delay = -5ms; }, "'retry.delay'", "-5 ms", "0 or more"},
        {[](auto& o) { o.retry.max_delay = -5ms; }, "'retry.max_delay'", "-5 ms", "0 or more"},
        {[](auto& o) { o.retry.factor = 0.5; }, "'retry.factor'", "0.5", "1 or more"},
        {[](auto& o) { o.retry.factor = std::nan(""); }, "'retry.factor'", "nan", "1 or more"},
        {[](auto& o) { o.registry.strategy = "Robin"; }, "'registry.strategy'", "'Robin'",
         "there are CpuUsage, Latency, LeastRequests"},
        {[](auto& o) {
           o.registry.strategy = "Shard";
           o.registry.strategy_options = Value{{"shardKye", "id"}};
         },
         "'registry.strategy'", "shardKye", "shardKey"},
        {[](auto& o) { o.registry.stop_delay = -1ms; }, "'registry.stop_delay'", "-1 ms", "0 or more"},
        {[](auto& o) { o.registry.announce_debounce = -1ms; }, "'registry.announce_debounce'", "-1 ms",
         "0 or more"},
        {[](auto& o) { o.registry.nodes_max = 0; }, "'registry.nodes_max'", "0", "at least 1"},
        {[](auto& o) { o.registry.services_per_node_max = 0; }, "'registry.services_per_node_max'", "0",
         "at least 1"},
        {[](auto& o) { o.registry.actions_per_service_max = 0; }, "'registry.actions_per_service_max'", "0",
         "at least 1"},
        {[](auto& o) { o.heartbeat.interval = -1ms; }, "'heartbeat.interval'", "-1 ms", "0 or more"},
        {[](auto& o) { o.heartbeat.timeout = 10s; }, "'heartbeat.timeout'", "10000 ms", "longer than"},
        {[](auto& o) { o.heartbeat.clean_offline_nodes = -1ms; }, "'heartbeat.clean_offline_nodes'", "-1 ms",
         "0 or more"},
        {[](auto& o) { o.gossip.period = 50ms; }, "'gossip.period'", "50 ms", "100 ms or more"},
        {[](auto& o) { o.registry.catalog_bytes_max = 0; }, "'registry.catalog_bytes_max'", "0",
         "at least 1"},
        {[](auto& o) { o.transit.served_max = 0; }, "'transit.served_max'", "0", "at least 1"},
        {[](auto& o) { o.transit.served_bytes_max = 0; }, "'transit.served_bytes_max'", "0", "at least 1"},
        {[](auto& o) { o.transit.pending_requests_max = 0; }, "'transit.pending_requests_max'", "0",
         "at least 1"},
        {[](auto& o) { o.tracking.shutdown_timeout = -1ms; }, "'tracking.shutdown_timeout'", "-1 ms",
         "0 or more"},
        {[](auto& o) { o.dependency_timeout = -1ms; }, "'dependency_timeout'", "-1 ms", "0 or more"},
        {[](auto& o) { o.strategies["Mine"] = {}; }, "'strategies'", "'Mine'", "must be a function"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.name);
      const std::string message = refusal(row.change);
      CAPTURE(message);
      for (const char* part : {row.name, row.value, row.allowed}) {
        CAPTURE(part);
        CHECK(message.find(part) != std::string::npos);
      }
    }
  }

  TEST_CASE("odd options that work are taken") {
    const std::function<void(BrokerOptions&)> good[] = {
        [](auto&) {},
        [](auto& o) { o.node_id = "my.host-1234"; },
        [](auto& o) { o.node_id = "knöten"; },
        [](auto& o) { o.heartbeat.interval = 0ms; },
        [](auto& o) {
          o.retry = {.enabled = true, .retries = 0, .delay = 0ms, .max_delay = 0ms, .factor = 1};
        },
        [](auto& o) { o.retry.factor = std::numeric_limits<double>::infinity(); },
        [](auto& o) { o.registry.stop_delay = 0ms; },
        [](auto& o) {
          o.metadata = Value{{"zone", "eu"}};
        },
        [](auto& o) { o.serializer = "msgpack"; },
        [](auto& o) { o.registry.strategy = "shard"; },
    };
    for (const auto& change : good) CHECK(refusal(change) == "");
  }

  TEST_CASE("without a name a node is called after its host and process") {
    SimWorld world(1);
    SimRuntime process(world, world.fabric().add_host("Big-Host"));
    const Broker broker(process.runtime(), {});
    CHECK(broker.node_id() == "big-host-" + std::to_string(process.system().process_id()));
  }

  TEST_CASE("a broker is started once") {
    SimWorld world(1);
    SimRuntime process(world, world.fabric().add_host());
    Broker broker(process.runtime(), {});
    Task<void> first = broker.start();
    first.start([](void*) {}, nullptr);
    CHECK(broker.started());
    Task<void> second = broker.start();
    second.start([](void*) {}, nullptr);
    CHECK_THROWS_WITH_AS(second.take(), doctest::Contains("started once"), Exception);
  }
}

}  // namespace weft
