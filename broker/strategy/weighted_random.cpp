#include "broker/strategy/weighted_random.h"

#include <algorithm>

namespace weft {

const Endpoint* WeightedRandomStrategy::select(std::span<const Endpoint* const> endpoints,
                                               const Selection& selection) {
  if (!is_current_ || known_.size() != endpoints.size()) rebuild(endpoints);
  const bool may_be_cold = options_.slow_start > Duration::zero();
  const auto take = [&] { return may_be_cold ? draw_warm(endpoints, selection.now) : draw(); };
  std::size_t at = take();
  if (known_[at] != endpoints[at]) {  // Another list of the same length.
    rebuild(endpoints);
    at = take();
  }
  return endpoints[at];
}

std::size_t WeightedRandomStrategy::draw() {
  const std::size_t at = random_.below(columns_.size());
  return random_.uniform() < columns_[at].share ? at : columns_[at].other;
}

std::size_t WeightedRandomStrategy::draw_warm(std::span<const Endpoint* const> endpoints, Instant now) {
  constexpr int kDrawsMax = 32;
  const double warmest = warmth(oldest_, now, options_.slow_start);  // Where all are new, none is held back.
  std::size_t at = draw();
  for (int draws = 1; draws < kDrawsMax && known_[at] == endpoints[at]; ++draws) {
    const double part = warmth(endpoints[at]->node->since, now, options_.slow_start);
    if (part >= warmest || random_.uniform() * warmest < part) break;
    at = draw();
  }
  return at;
}

void WeightedRandomStrategy::rebuild(std::span<const Endpoint* const> endpoints) {
  known_.assign(endpoints.begin(), endpoints.end());
  columns_.clear();
  double sum = 0;
  oldest_ = Instant::max();
  for (std::uint32_t i = 0; i < endpoints.size(); ++i) {
    const Node& node = *endpoints[i]->node;
    const double weight = weight_of(node, options_.weight_key);
    columns_.push_back({weight, i});
    sum += weight;
    if (weight > 0) oldest_ = std::min(oldest_, node.since);
  }
  if (sum == 0) {  // All are drained: better any than none.
    for (Column& column : columns_) column.share = 1;
    sum = static_cast<double>(columns_.size());
    oldest_ = Instant{};
  }
  const auto heaviest = static_cast<std::uint32_t>(
      std::max_element(columns_.begin(), columns_.end(),
                       [](const Column& a, const Column& b) { return a.share < b.share; }) -
      columns_.begin());
  low_.clear();
  high_.clear();
  for (std::uint32_t i = 0; i < columns_.size(); ++i) {
    columns_[i].share *= static_cast<double>(columns_.size()) / sum;
    (columns_[i].share < 1 ? low_ : high_).push_back(i);
  }
  while (!low_.empty() && !high_.empty()) {  // A high one fills up what a low one leaves of its column.
    const std::uint32_t filled = low_.back();
    const std::uint32_t giver = high_.back();
    low_.pop_back();
    columns_[filled].other = giver;
    columns_[giver].share -= 1 - columns_[filled].share;
    if (columns_[giver].share < 1) {
      high_.pop_back();
      low_.push_back(giver);
    }
  }
  // What is left is full but for rounding, or drained.
  for (const auto* rest : {&low_, &high_}) {
    for (const std::uint32_t i : *rest) {
      if (columns_[i].share > 0) columns_[i].share = 1;
      columns_[i].other = heaviest;
    }
  }
  is_current_ = true;
}

Result<std::unique_ptr<Strategy>> make_weighted_random(const StrategyContext& context) {
  OptionReader reader("WeightedRandom", context.options);
  WeightOptions options = read_weight_options(reader);
  if (auto read = reader.finish(); !read) return read.error();
  return std::make_unique<WeightedRandomStrategy>(std::move(options), context.random);
}

}  // namespace weft
