#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/buffer.h"
#include "lib/value/token.h"

namespace weft {

// Writes a value as JSON text at the end of a buffer.
//
// JSON has no word for some values: NaN and the infinities become null, as in JavaScript; a timestamp becomes
// ISO text (null outside JavaScript's range of dates); binary becomes Node's {"type":"Buffer","data":[…]}.
// -0.0 is written as "-0", which JavaScript reads as the same number.
class JsonWriter final : public ValueWriter {
 public:
  enum class Mode : std::uint8_t {
    kStrict,  // Bytes that are no text, and nesting no peer accepts, fail: see failure().
    kLenient  // They become U+FFFD; any nesting is written.
  };

  // `indent`: spaces per level; 0 writes everything on one line.
  explicit JsonWriter(Buffer& out, Mode mode = Mode::kStrict, int indent = 0)
      : out_(out), mode_(mode), indent_(indent) {}

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
  void begin_array(std::size_t count) override { open('[', count); }
  void end_array() override { close(']'); }
  void begin_object(std::size_t count) override { open('{', count); }
  void key(std::string_view name) override;
  void end_object() override { close('}'); }

 private:
  void before_value() {
    if (comma_) separate();
    comma_ = true;
  }
  void separate();
  void break_line();
  void open(char bracket, std::size_t count);
  void close(char bracket);
  void quote(std::string_view text);
  void quote_slowly(std::string_view text);

  Buffer& out_;
  const char* failure_ = nullptr;
  int depth_ = 0;
  Mode mode_;
  int indent_;
  bool comma_ = false;  // Something stands before the next value or key on its level.
  bool empty_ = false;  // The container just opened has no members.
};

}  // namespace weft
