#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/buffer.h"
#include "lib/value/token.h"

namespace weft {

// Writes a value as MessagePack at the end of a buffer: integers in their shortest form, other numbers as
// float64, timestamps as extension type -1.
class MsgpackWriter final : public ValueWriter {
 public:
  explicit MsgpackWriter(Buffer& out) : out_(out) {}

  // Why what was written is no good; null while all is well.
  [[nodiscard]] const char* failure() const { return failure_; }

  void null() override;
  void boolean(bool value) override;
  void integer(std::int64_t value) override;
  void unsigned_integer(std::uint64_t value) override;
  void number(double value) override;
  void string(std::string_view value) override;
  void binary(std::string_view value) override;
  void timestamp(std::int64_t ms) override;
  void begin_array(std::size_t count) override;
  void end_array() override { --depth_; }
  void begin_object(std::size_t count) override;
  void key(std::string_view name) override { string(name); }
  void end_object() override { --depth_; }

 private:
  void enter();
  // Whether the format can express a length; notes the failure otherwise.
  [[nodiscard]] bool fits(std::size_t count);

  Buffer& out_;
  const char* failure_ = nullptr;
  int depth_ = 0;
};

}  // namespace weft
