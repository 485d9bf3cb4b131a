#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/buffer.h"
#include "lib/value/token.h"

namespace weft {

// A position in MessagePack bytes.
//
// msgpack-c writes this format for us, but does not read it: its parser pushes. A visitor can neither stop in
// the middle to be asked for the next token, nor pass over a value and tell where it ended without a stack
// from the heap for each call. The format is one byte of kind, then a length or a number: reading it takes
// less code than taming a visitor.
class MsgpackCursor {
 public:
  void reset(BytesView bytes) {
    at_ = bytes.data();
    end_ = at_ + bytes.size();
  }

  [[nodiscard]] const char* at() const { return at_; }
  [[nodiscard]] char peek() const { return at_ != end_ ? *at_ : '\xc1'; }
  // Why the last call returned false.
  [[nodiscard]] const char* failure() const { return failure_; }

  // Reads the next scalar, or the head of the next container: then `count` is how many items or members it
  // has. A container that claims more than the bytes left could hold is refused here. Text is not checked.
  [[nodiscard]] bool take(Token& out, std::uint32_t& count) {
    if (at_ == end_) return fail(kTruncated);
    const auto head = static_cast<std::uint8_t>(*at_++);
    if (head < 0x80 || head >= 0xe0) {
      out.kind = Token::Kind::kInt;
      out.integer = static_cast<std::int8_t>(head);
      return true;
    }
    if (head >= 0xc0) return take_long(head, out, count);
    if (head >= 0xa0) {
      out.kind = Token::Kind::kString;
      return take_bytes(head & 0x1fU, out.text);
    }
    return take_container(out, head < 0x90 ? Token::Kind::kBeginObject : Token::Kind::kBeginArray,
                          head & 0x0fU, count);
  }
  // Reads a key. Binary keys are text; integers are written out into `scratch`; other kinds are refused.
  [[nodiscard]] bool take_key(std::string_view& key, std::string& scratch);
  // Passes over one value. Of scalars only the length is looked at.
  [[nodiscard]] bool take_value(BytesView& value);

 private:
  [[nodiscard]] bool fail(const char* why) {
    failure_ = why;
    return false;
  }
  [[nodiscard]] bool take_bytes(std::size_t size, std::string_view& bytes) {
    if (size > static_cast<std::size_t>(end_ - at_)) return fail(kTruncated);
    bytes = {at_, size};
    at_ += size;
    return true;
  }
  // A value whose first byte is not its length or number as well.
  [[nodiscard]] bool take_long(std::uint8_t head, Token& out, std::uint32_t& count);
  template <typename Number>
  [[nodiscard]] bool take_number(Number& number);
  template <typename Length>
  [[nodiscard]] bool take_run(Token& out, Token::Kind kind);
  [[nodiscard]] bool take_container(Token& out, Token::Kind kind, std::uint32_t count_read,
                                    std::uint32_t& count) {
    const std::uint64_t bytes_min =
        kind == Token::Kind::kBeginObject ? std::uint64_t{count_read} * 2 : count_read;
    if (bytes_min > static_cast<std::uint64_t>(end_ - at_)) return fail(kTruncated);
    out.kind = kind;
    count = count_read;
    return true;
  }
  [[nodiscard]] bool take_extension(Token& out, std::size_t size);

  static constexpr const char* kTruncated = "the bytes end inside a value";

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  const char* failure_ = nullptr;
};

}  // namespace weft
