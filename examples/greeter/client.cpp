// Calls the workers, and shows who served: greeter-client COMMAND [options]

#include <array>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>

#include "examples/greeter/greeter.h"
#include "examples/greeter/options.h"
#include "examples/greeter/prefer_zone.h"

namespace greeter {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view kUsage =
    "usage: greeter-client COMMAND [options]\n"
    "  calls N             makes N calls, one after the other, and shows who served them\n"
    "  nodes               shows the nodes of the mesh\n"
    "  loop SECONDS        calls all the time; a line each second says who served, and what failed\n";

// Who served how many calls, and how many were not served.
struct Tally {
  std::map<std::string, int> served;
  int failed = 0;

  void print(std::ostream& out) const {
    for (const auto& [node, count] : served) out << node << ' ' << count << "   ";
    out << "failed " << failed << std::endl;
  }
  void add_to(Tally& total) const {
    for (const auto& [node, count] : served) total.served[node] += count;
    total.failed += failed;
  }
};

std::string name_of(int number) {
  static constexpr std::array kNames = {"Ann", "Bob", "Cleo", "Dan", "Eve", "Finn"};
  return kNames[static_cast<std::size_t>(number) % kNames.size()];
}

// Nodes that offer the greeter.
int workers_of(const weft::Broker& broker) {
  int count = 0;
  const weft::Value nodes = broker.node_list(true, true);
  for (const weft::Value& node : nodes.items()) {
    for (const weft::Value& service : node["services"].items()) {
      if (service["name"].str_or({}) == "greeter") ++count;
    }
  }
  return count;
}

weft::Task<void> wait_for_workers(weft::Broker& broker, int wanted) {
  const weft::Instant deadline = broker.now() + 20s;
  while (workers_of(broker) < wanted) {
    if (broker.now() > deadline) {
      throw weft::ServerError("Only " + std::to_string(workers_of(broker)) + " of " + std::to_string(wanted) +
                              " workers came within 20 s.");
    }
    co_await broker.sleep(10ms);
  }
}

weft::Task<int> run_calls(weft::Broker& broker, const Options& options, int count) {
  Tally tally;
  for (int i = 0; i < count; ++i) {
    const HelloParams params{name_of(i), std::nullopt};
    const auto hello =
        co_await broker.try_call<Hello>(options.action, params, {.timeout = 5s, .retries = options.retries});
    if (!hello) {
      ++tally.failed;
      std::cout << hello.error().to_string() << std::endl;
      continue;
    }
    ++tally.served[hello->node];
    std::cout << std::left << std::setw(24) << hello->text << " from " << hello->node;
    if (!hello->zone.empty()) std::cout << " in " << hello->zone;
    std::cout << std::endl;
  }
  std::cout << "together: ";
  tally.print(std::cout);
  co_return tally.failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

weft::Task<int> show_nodes(weft::Broker& broker) {
  const auto row = [](std::string_view node, std::string_view zone, std::string_view state,
                      const std::string& services) {
    std::cout << std::left << std::setw(20) << node << std::setw(8) << zone << std::setw(9) << state
              << services << std::endl;
  };
  row("node", "zone", "state", "services");
  const weft::Value nodes = co_await broker.call("$node.list", {{"withServices", true}});
  for (const weft::Value& node : nodes.items()) {
    std::string services;
    for (const weft::Value& service : node["services"].items()) {
      const std::string_view name = service["name"].str_or({});
      if (!name.starts_with('$')) services += std::string(services.empty() ? "" : ", ") + std::string(name);
    }
    row(node["id"].str_or({}), node["metadata"]["zone"].str_or("-"),
        node["available"].boolean_or(false) ? "online" : "offline", services.empty() ? "-" : services);
  }
  co_return EXIT_SUCCESS;
}

weft::Task<void> keep_calling(weft::Broker& broker, const Options& options, Tally& tally, const bool& over) {
  int number = 0;
  while (!over) {
    const HelloParams params{name_of(number++), options.think_ms};
    const auto hello =
        co_await broker.try_call<Hello>(options.action, params, {.timeout = 5s, .retries = options.retries});
    if (hello) {
      ++tally.served[hello->node];
    } else {
      if (++tally.failed == 1) std::cout << "failed: " << hello.error().to_string() << std::endl;
      co_await broker.sleep(10ms);
    }
  }
}

weft::Task<int> run_loop(weft::Broker& broker, const Options& options, int seconds) {
  const weft::LocalListener news =
      broker.on_local("$node.*", [](std::string_view event, const weft::Value& payload) {
        const std::string_view node = payload["node"]["id"].str_or({});
        if (event == "$node.connected") std::cout << node << " is here" << std::endl;
        if (event == "$node.disconnected") {
          std::cout << node << (payload["unexpected"].boolean_or(false) ? " is lost" : " has left")
                    << std::endl;
        }
      });
  Tally line;
  Tally total;
  bool over = false;
  int running = options.callers;
  for (int i = 0; i < options.callers; ++i) {
    broker.spawn([&]() -> weft::Task<void> {
      co_await keep_calling(broker, options, line, over);
      --running;
    });
  }
  const weft::Instant end = broker.now() + std::chrono::seconds(seconds);
  while (broker.now() < end) {
    co_await broker.sleep(options.every);
    line.print(std::cout);
    line.add_to(total);
    line = Tally();
  }
  over = true;
  while (running > 0) co_await broker.sleep(1ms);
  line.add_to(total);
  std::cout << "together: ";
  total.print(std::cout);
  co_return total.failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void choose_strategy(Options& options) {
  weft::BrokerOptions& broker = options.app.broker;
  broker.strategies["PreferZone"] = [zone = options.zone](const weft::StrategyContext&) {
    return std::make_unique<PreferZone>(zone);
  };
  if (!options.strategy.empty()) broker.registry.strategy = options.strategy;
  if (!options.shard_key.empty()) broker.registry.strategy_options = {{"shardKey", options.shard_key}};
}

weft::Task<int> run(weft::Broker& broker, const Options& options, int number) {
  co_await wait_for_workers(broker, options.workers);
  const std::string& command = options.words[0];
  if (command == "nodes") co_return co_await show_nodes(broker);
  if (command == "calls") co_return co_await run_calls(broker, options, number);
  co_return co_await run_loop(broker, options, number);
}

int run(int argc, char** argv) {
  Options options;
  bool good = parse({argv + 1, argv + argc}, options) && !options.words.empty();
  int number = 0;
  if (good) {
    const std::string& command = options.words[0];
    const bool counts = command == "calls" || command == "loop";
    good = (counts || command == "nodes") && options.words.size() == (counts ? 2 : 1);
    if (good && counts) number = std::atoi(options.words[1].c_str());
    good = good && (!counts || number > 0);
  }
  if (!good) {
    std::cerr << kUsage << kNodeOptionsHelp << kClientOptionsHelp;
    return 2;
  }
  choose_strategy(options);
  options.app.log_level = weft::LogLevel::kError;
  try {
    weft::App app(options.app);
    return app.run([&](weft::Broker& broker) { return run(broker, options, number); });
  } catch (const weft::Exception& error) {
    std::cerr << "greeter-client: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}

}  // namespace

}  // namespace greeter

int main(int argc, char** argv) {
  return greeter::run(argc, argv);
}
