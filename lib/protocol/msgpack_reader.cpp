#include "lib/protocol/msgpack_reader.h"

#include "lib/protocol/text.h"

namespace weft {

void MsgpackReader::start(BytesView bytes) {
  cursor_.reset(bytes);
  depth_ = 0;
  value_due_ = true;
  failed_ = false;
  error_ = "";
}

const Token& MsgpackReader::fail(const char* why) {
  failed_ = true;
  error_ = why;
  token_.kind = Token::Kind::kError;
  token_.text = {};
  return token_;
}

const Token& MsgpackReader::value() {
  std::uint32_t count = 0;
  if (!cursor_.take(token_, count)) return fail(cursor_.failure());
  switch (token_.kind) {
    case Token::Kind::kString:
      return is_text(token_.text) ? token_ : fail("text is not valid UTF-8");
    case Token::Kind::kBeginArray:
    case Token::Kind::kBeginObject:
      if (depth_ == kValueDepthMax) return fail("nested too deeply");
      levels_[depth_++] = {count, token_.kind == Token::Kind::kBeginObject};
      return token_;
    default:
      return token_;
  }
}

const Token& MsgpackReader::next() {
  if (failed_) {
    token_.kind = Token::Kind::kError;
    return token_;
  }
  if (value_due_) {
    value_due_ = false;
    return value();
  }
  if (depth_ == 0) return fail("the value has ended");
  Level& level = levels_[depth_ - 1];
  if (level.left == 0) {
    token_.kind = level.is_object ? Token::Kind::kEndObject : Token::Kind::kEndArray;
    --depth_;
    return token_;
  }
  --level.left;
  if (!level.is_object) return value();
  if (!cursor_.take_key(token_.text, scratch_)) return fail(cursor_.failure());
  token_.kind = Token::Kind::kKey;
  value_due_ = true;
  return token_;
}

void MsgpackReader::skip() {
  if (failed_) return;
  if (!value_due_) {
    if (depth_ == 0) return;
    Level& level = levels_[depth_ - 1];
    if (level.left == 0) return;
    if (level.is_object) {
      if (next().kind != Token::Kind::kKey) return;
    } else {
      --level.left;
    }
  }
  value_due_ = false;
  BytesView passed;
  if (!cursor_.take_value(passed)) (void)fail(cursor_.failure());
}

}  // namespace weft
