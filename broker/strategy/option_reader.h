#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/error/result.h"
#include "lib/value/value.h"

namespace weft {

// Reads the options of one strategy and refuses what it does not know, so that a slip of the pen or an option
// of another strategy never passes in silence. Absent and null mean the default.
//
// Ask for every option there is, then call finish(): the first thing wrong is its error.
class OptionReader {
 public:
  OptionReader(std::string_view strategy, const Value& options) : strategy_(strategy), options_(options) {}

  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback, std::int64_t min,
                                     std::int64_t max);
  [[nodiscard]] double number(std::string_view name, double fallback, double min, double max);
  [[nodiscard]] std::string text(std::string_view name);

  [[nodiscard]] Result<> finish() const;

 private:
  // The value of option `name` unless it is absent, null or an error is known already.
  const Value* take(std::string_view name, std::string allowed);
  void refuse(const Value& value);

  struct Known {
    std::string_view name;
    std::string allowed;  // "an integer from 1 to 5".
  };

  std::string_view strategy_;
  const Value& options_;
  std::vector<Known> known_;
  std::optional<Error> error_;
};

}  // namespace weft
