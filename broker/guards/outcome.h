#pragma once

#include <cstdint>

namespace weft {

// What the end of a call says about the endpoint that served it.
enum class CallOutcome : std::uint8_t {
  kSuccess,
  kFailure,   // It failed by its own fault, or gave no answer in time.
  kAnswered,  // It refused what it was asked: it lives, and the caller is wrong.
  kUnknown,   // Nothing: the call did not get there, or somebody else failed.
};

}  // namespace weft
