#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/protocol/msgpack_cursor.h"
#include "lib/value/token.h"
#include "lib/value/value_io.h"

namespace weft {

// A MessagePack value, token by token. Bytes behind the value are ignored.
class MsgpackReader final : public ValueReader {
 public:
  void start(BytesView bytes);
  void finish() {}  // Holds nothing worth giving back.

  const Token& next() override;
  void skip() override;
  [[nodiscard]] std::string_view error() const override { return error_; }

 private:
  struct Level {
    std::uint32_t left;  // Items, or members whose key was not given yet.
    bool is_object;
  };
  [[nodiscard]] const Token& value();
  [[nodiscard]] const Token& fail(const char* why);

  MsgpackCursor cursor_;
  Token token_;
  Level levels_[kValueDepthMax] = {};
  int depth_ = 0;
  bool value_due_ = false;  // The root or a member's value comes next.
  bool failed_ = true;
  std::string scratch_;
  const char* error_ = "";
};

}  // namespace weft
