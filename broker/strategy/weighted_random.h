#pragma once

#include "broker/strategy/strategy.h"
#include "broker/strategy/weights.h"

namespace weft {

// Any of them, each as likely as its weight says.
//
// By an alias table (Vose, "A Linear Algorithm for Generating Random Numbers with a Given Distribution",
// 1991): two looks, however many endpoints there are. A newcomer that is drawn is drawn again unless it is
// warm enough.
class WeightedRandomStrategy final : public Strategy {
 public:
  WeightedRandomStrategy(WeightOptions options, Random& random)
      : options_(std::move(options)), random_(random) {}
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override;
  void on_endpoints_changed() override { is_current_ = false; }

 private:
  // A column of the table: its own endpoint up to `share` of its height, another one above.
  struct Column {
    double share;
    std::uint32_t other;
  };

  void rebuild(std::span<const Endpoint* const> endpoints);
  [[nodiscard]] std::size_t draw();
  [[nodiscard]] std::size_t draw_warm(std::span<const Endpoint* const> endpoints, Instant now);

  WeightOptions options_;
  Random& random_;
  bool is_current_ = false;
  Instant oldest_{};                    // Of those with a weight.
  std::vector<const Endpoint*> known_;  // The list the table was made from; compared only.
  std::vector<Column> columns_;
  std::vector<std::uint32_t> low_, high_;  // What rebuild() works with.
};

// Options: weightKey, slowStart (s).
[[nodiscard]] Result<std::unique_ptr<Strategy>> make_weighted_random(const StrategyContext& context);

}  // namespace weft
