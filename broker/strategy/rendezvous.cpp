#include "broker/strategy/rendezvous.h"

#include <algorithm>
#include <cmath>

#include "broker/strategy/option_reader.h"

namespace weft {

namespace {

constexpr double kLoadFactorMin = 1.01;
constexpr double kLoadFactorMax = 1000;
// Looks for somebody who may take a key, before all are gone through.
constexpr int kLooksMax = 16;

}  // namespace

RendezvousStrategy::RendezvousStrategy(RendezvousOptions options, Random& random)
    : options_(std::move(options)),
      random_(random),
      finder_(options_.shard_key, options_.key),
      table_(options_.slots, options_.weight_key) {}

const Endpoint* RendezvousStrategy::select(std::span<const Endpoint* const> endpoints,
                                           const Selection& selection) {
  std::string_view key;
  if (!finder_.find(selection, key)) return endpoints[random_.below(endpoints.size())];
  if (!is_current_ || table_.size() != endpoints.size()) {
    table_.update(endpoints);
    is_current_ = true;
  }
  std::uint64_t hash = hash_of_text(key);
  std::size_t at = table_.find(hash);
  if (table_.endpoint(at) != endpoints[at]) {  // Another list of the same length.
    table_.update(endpoints);
    at = table_.find(hash);
  }
  if (options_.load_factor == 0) return endpoints[at];
  for (int look = 0; look < kLooksMax; ++look) {
    if (may_take(*endpoints[at], table_.share(at))) return endpoints[at];
    hash = hash * 6364136223846793005ULL + 1442695040888963407ULL;  // The next of a fixed series.
    at = table_.find(hash);
  }
  for (std::size_t step = 0; step < table_.size(); ++step) {  // Their bounds add up to more than there is.
    at = at + 1 == table_.size() ? 0 : at + 1;
    if (may_take(*endpoints[at], table_.share(at))) break;
  }
  return endpoints[at];
}

bool RendezvousStrategy::may_take(const Endpoint& endpoint, double share) const {
  if (endpoint.group == nullptr) return true;  // Of an event: nobody counts those.
  const double bound = std::ceil(options_.load_factor * (endpoint.group->in_flight + 1) * share);
  return endpoint.in_flight() < bound;
}

Result<std::unique_ptr<Strategy>> make_rendezvous_strategy(RendezvousOptions options, Random& random) {
  const auto refuse = [](std::string_view option, std::string allowed) {
    return Error::broker_options(
        "Strategy 'Rendezvous': " + std::string(option) + " must be " + allowed + ".",
        {{"strategy", "Rendezvous"}, {"option", option}, {"allowed", allowed}});
  };
  if (options.slots == 0 || options.slots > kRendezvousSlotsMax) {
    return refuse("slots", "an integer from 1 to " + std::to_string(kRendezvousSlotsMax));
  }
  if (options.load_factor != 0 &&
      !(options.load_factor >= kLoadFactorMin && options.load_factor <= kLoadFactorMax)) {
    return refuse("loadFactor", "0 or a number from 1.01 to 1000");
  }
  return std::make_unique<RendezvousStrategy>(std::move(options), random);
}

Result<std::unique_ptr<Strategy>> make_rendezvous(const StrategyContext& context) {
  OptionReader reader("Rendezvous", context.options);
  RendezvousOptions options;
  options.shard_key = reader.text("shardKey");
  if (std::string key = reader.text("weightKey"); !key.empty()) options.weight_key = std::move(key);
  options.slots = static_cast<std::size_t>(reader.integer("slots", kRendezvousSlots, 1, kRendezvousSlotsMax));
  options.load_factor = reader.number("loadFactor", 0, kLoadFactorMin, kLoadFactorMax);
  if (auto read = reader.finish(); !read) return read.error();
  return make_rendezvous_strategy(std::move(options), context.random);
}

}  // namespace weft
