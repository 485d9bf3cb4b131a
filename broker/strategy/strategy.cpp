#include "broker/strategy/strategy.h"

#include <algorithm>
#include <iterator>

#include "broker/strategy/cpu_usage.h"
#include "broker/strategy/latency.h"
#include "broker/strategy/least_requests.h"
#include "broker/strategy/peak_ewma.h"
#include "broker/strategy/random.h"
#include "broker/strategy/rendezvous.h"
#include "broker/strategy/round_robin.h"
#include "broker/strategy/shard.h"
#include "broker/strategy/weighted_random.h"
#include "broker/strategy/weighted_round_robin.h"

namespace weft {

namespace {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

void land(Flight& flight, Ending ending, Instant now) {
  Endpoint* endpoint = flight.endpoint();
  if (endpoint == nullptr) return;
  flight.leave();
  if (endpoint->group == nullptr || endpoint->group->strategy == nullptr) return;
  endpoint->group->strategy->on_ended(*endpoint, ending, flight.begun(), now);
}

StrategyTable::StrategyTable() {
  add("RoundRobin", make_round_robin);
  add("Random", make_random);
  add("CpuUsage", make_cpu_usage);
  add("Latency", make_latency);
  add("Shard", make_shard);
  add("LeastRequests", make_least_requests);
  add("PeakEwma", make_peak_ewma);
  add("WeightedRoundRobin", make_weighted_round_robin);
  add("WeightedRandom", make_weighted_random);
  add("Rendezvous", make_rendezvous);
}

void StrategyTable::add(std::string_view name, StrategyFactory factory) {
  factories_[std::string(name)] = std::move(factory);
}

Result<std::unique_ptr<Strategy>> StrategyTable::make(std::string_view name, const Value& options,
                                                      Random& random) const {
  auto found = factories_.find(name);
  if (found == factories_.end()) {
    found = std::find_if(factories_.begin(), factories_.end(),
                         [&](const auto& entry) { return equals_ignoring_case(entry.first, name); });
  }
  if (found != factories_.end()) return found->second({random, options});
  std::string text = "There is no strategy '" + std::string(name) + "'; there are";
  Value known = Value::array();
  for (const auto& [known_name, factory] : factories_) {
    text += (known.empty() ? " " : ", ") + known_name;
    known.push_back(known_name);
  }
  return Error::broker_options(text + ".", {{"strategy", name}, {"allowed", std::move(known)}});
}

bool StrategyTable::is_moleculers(std::string_view name) {
  constexpr std::string_view kTheirs[] = {"RoundRobin", "Random", "CpuUsage", "Latency", "Shard"};
  return std::any_of(std::begin(kTheirs), std::end(kTheirs),
                     [name](std::string_view known) { return equals_ignoring_case(known, name); });
}

std::vector<std::string> StrategyTable::names() const {
  std::vector<std::string> names;
  for (const auto& [name, factory] : factories_) names.push_back(name);
  return names;
}

}  // namespace weft
