#pragma once

#include <cstdint>
#include <string_view>

#include "lib/runtime/runtime.h"

namespace weft {

struct CpuTimes {
  std::uint64_t busy = 0;  // In any unit.
  std::uint64_t total = 0;
};

// The first line of Linux's /proc/stat; nothing when it is something else.
[[nodiscard]] std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat);

// The machine and process as libuv and /proc tell of them.
class UvSystemProbe final : public SystemProbe {
 public:
  UvSystemProbe();
  [[nodiscard]] int cpu_percent() override;
  [[nodiscard]] Value health() override;
  [[nodiscard]] std::int64_t process_id() const override;

 private:
  CpuTimes last_;
  int percent_ = -1;
  std::uint64_t started_ns_;
};

}  // namespace weft
