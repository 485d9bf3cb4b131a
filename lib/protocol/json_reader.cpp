#include "lib/protocol/json_reader.h"

namespace weft {

void JsonReader::start(BytesView text) {
  depth_ = 0;
  scratch_.clear();
  if (const char* why = index_.scan(text)) {
    (void)fail(why);
    return;
  }
  state_ = State::kValue;
  error_.clear();
  cursor_.reset(text, index_);
}

const Token& JsonReader::fail(std::string_view why) {
  state_ = State::kFailed;
  token_.kind = Token::Kind::kError;
  token_.text = {};
  error_ = why;
  return token_;
}

void JsonReader::after_value() {
  if (depth_ > 0) {
    state_ = is_object_[depth_ - 1] ? State::kAfterMember : State::kAfterItem;
  } else if (cursor_.at_end()) {
    state_ = State::kDone;
  } else {
    (void)fail("something follows the value");
  }
}

const Token& JsonReader::value() {
  const char c = cursor_.peek();
  if (c == '{' || c == '[') {
    if (depth_ == kValueDepthMax) return fail("nested too deeply");
    cursor_.advance();
    is_object_[depth_++] = c == '{';
    token_.kind = c == '{' ? Token::Kind::kBeginObject : Token::Kind::kBeginArray;
    state_ = c == '{' ? State::kFirstMember : State::kFirstItem;
    return token_;
  }
  if (cursor_.at_end()) return fail("the text ends inside a value");
  if (!read_json_scalar(cursor_.take_scalar(), token_, scratch_)) return fail("not a value");
  after_value();
  return token_;
}

const Token& JsonReader::key() {
  if (cursor_.peek() != '"') return fail("a key was expected");
  if (!read_json_string(cursor_.take_scalar(), token_.text, scratch_)) return fail("a key is malformed");
  if (!cursor_.take(':')) return fail("a colon was expected");
  token_.kind = Token::Kind::kKey;
  state_ = State::kValue;
  return token_;
}

const Token& JsonReader::close(Token::Kind kind) {
  --depth_;
  token_.kind = kind;
  after_value();
  return token_;
}

const Token& JsonReader::next() {
  scratch_.clear();
  switch (state_) {
    case State::kValue:
      return value();
    case State::kFirstItem:
      return cursor_.take(']') ? close(Token::Kind::kEndArray) : value();
    case State::kAfterItem:
      if (cursor_.take(',')) return value();
      return cursor_.take(']') ? close(Token::Kind::kEndArray) : fail("a comma or ] was expected");
    case State::kFirstMember:
      return cursor_.take('}') ? close(Token::Kind::kEndObject) : key();
    case State::kAfterMember:
      if (cursor_.take(',')) return key();
      return cursor_.take('}') ? close(Token::Kind::kEndObject) : fail("a comma or } was expected");
    case State::kDone:
      return fail("the value has ended");
    case State::kFailed:
      break;
  }
  token_.kind = Token::Kind::kError;
  return token_;
}

void JsonReader::skip() {
  switch (state_) {
    case State::kFirstItem:
      if (cursor_.peek() == ']') return;
      break;
    case State::kAfterItem:
      if (cursor_.peek() == ']') return;
      if (!cursor_.take(',')) return (void)fail("a comma or ] was expected");
      break;
    case State::kFirstMember:
    case State::kAfterMember:
      if (cursor_.peek() == '}' || next().kind != Token::Kind::kKey) return;
      break;
    case State::kValue:
      break;
    case State::kDone:
    case State::kFailed:
      return;
  }
  BytesView passed;
  if (!cursor_.take_value(passed)) return (void)fail("malformed or too deeply nested value");
  after_value();
}

}  // namespace weft
