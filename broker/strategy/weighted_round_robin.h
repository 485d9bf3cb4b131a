#pragma once

#include "broker/strategy/strategy.h"
#include "broker/strategy/weights.h"

namespace weft {

// One after the other, each as often as its weight says, and spread out rather than in a row: a a b a c a a
// for weights 5, 1 and 1.
//
// By earliest deadline: an endpoint of weight w is due every 1/w of a virtual time, and whoever is due first
// is taken. Over any stretch each gets its share to within one call. Where it begins is drawn, so that many
// callers do not begin with the same endpoint.
class WeightedRoundRobinStrategy final : public Strategy {
 public:
  WeightedRoundRobinStrategy(WeightOptions options, Random& random)
      : options_(std::move(options)), random_(random) {}
  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override;
  void on_endpoints_changed() override { is_current_ = false; }

 private:
  struct Member {
    const Endpoint* endpoint;  // Compared, and followed only while it is in the list.
    double step;               // 1 / weight.
    double due;                // Negative: it takes no part.
    Instant since;
  };
  struct Turn {
    double due;
    std::uint32_t member;  // Its place in the list.
  };

  [[nodiscard]] bool fits(std::span<const Endpoint* const> endpoints) const;
  void rebuild(std::span<const Endpoint* const> endpoints);
  // Puts the first turn where its new due time belongs.
  void sink_first();
  void restart_time();

  WeightOptions options_;
  Random& random_;
  bool is_current_ = false;
  double time_ = 0;              // When the last one taken was due.
  std::vector<Member> members_;  // As the list they were drawn up from.
  std::vector<Member> former_;   // By address: what rebuild() carries over.
  std::vector<Turn> turns_;      // A heap of four children each: the first is due first.
};

// Options: weightKey, slowStart (s).
[[nodiscard]] Result<std::unique_ptr<Strategy>> make_weighted_round_robin(const StrategyContext& context);

}  // namespace weft
