#pragma once

#include <cstdint>
#include <span>

#include "broker/guards/policies.h"
#include "broker/guards/rolling_window.h"

namespace weft {

// What one endpoint has done lately, for OutlierEjection.
struct OutlierRecord {
  explicit OutlierRecord(const OutlierPolicy& policy) : window(policy.window) {}

  RollingWindow window;
  std::uint32_t consecutive = 0;  // Failures since the last success.
  std::uint32_t times = 0;        // Ejections that are not forgiven yet.
  bool ejected = false;
  Instant until{};          // Of the ejection.
  Instant forgiven_from{};  // Since when the endpoint earns forgiveness.
};

// Ejects endpoints that fail where others do not: so many failures in a row, or too great a share of them in
// a rolling window. Ejections grow longer each time and are forgiven one by one, each after a window's length
// without another.
//
// Never more than max_ejection_percent of the records are ejected, after any step: an ejection beyond that is
// not made, and when records go, the ejection that has least left is ended.
//
// Pure, without a state of its own: `all` are the records of one action's endpoints. Allocates nothing.
class OutlierEjection {
 public:
  using Records = std::span<OutlierRecord* const>;

  explicit OutlierEjection(const OutlierPolicy& policy) : policy_(policy) {}

  // A call to `one` (of `all`) has ended. True: it is ejected now.
  bool report(Records all, OutlierRecord& one, bool failed, Instant now) const;
  // Ends the ejections whose time is over. True: there were some.
  bool tick(Records all, Instant now) const;
  // Ends ejections until there are no more than allowed; for when records have gone. True: it did.
  bool enforce(Records all) const;
  // When the next ejection ends.
  [[nodiscard]] static Instant next_tick(Records all);
  [[nodiscard]] std::size_t ejections_max(std::size_t records) const;

 private:
  void end_ejection(OutlierRecord& one, Instant now) const;
  void forgive(OutlierRecord& one, Instant now) const;
  [[nodiscard]] bool is_outlier(const OutlierRecord& one) const;

  OutlierPolicy policy_;
};

}  // namespace weft
