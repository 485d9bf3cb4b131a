#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/protocol/json_cursor.h"
#include "lib/protocol/json_index.h"
#include "lib/value/token.h"
#include "lib/value/value_io.h"

namespace weft {

// A value of a JSON text, token by token. Whatever follows the value is an error.
class JsonReader final : public ValueReader {
 public:
  // `text` has kReadPadding readable bytes behind it.
  void start(BytesView text);
  // After use: drops the text, keeps the memory.
  void finish() { index_.trim(); }

  const Token& next() override;
  void skip() override;
  [[nodiscard]] std::string_view error() const override { return error_; }

 private:
  enum class State : std::uint8_t {
    kValue,        // The root or a member's value comes next.
    kFirstItem,    // After '['.
    kFirstMember,  // After '{'.
    kAfterItem,
    kAfterMember,
    kDone,
    kFailed
  };
  [[nodiscard]] const Token& value();
  [[nodiscard]] const Token& key();
  [[nodiscard]] const Token& close(Token::Kind kind);
  [[nodiscard]] const Token& fail(std::string_view why);
  void after_value();

  JsonIndex index_;
  JsonCursor cursor_;
  Token token_;
  State state_ = State::kFailed;
  int depth_ = 0;
  bool is_object_[kValueDepthMax + 1] = {};  // Of each open container, outermost first.
  std::string scratch_;
  std::string error_;
};

}  // namespace weft
