#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/base/buffer.h"

namespace simdjson::internal {
class dom_parser_implementation;
}

namespace weft {

// simdjson's index of a text: where each bracket, colon, comma and scalar begins, strings passed over.
//
// Why simdjson's first stage and not its On Demand front end: a reader here is pulled from outside, token by
// token; On Demand hands out nested cursors for the scopes of one function, refuses the escaped lone
// surrogates that JavaScript sends, and has no value for a root that is a scalar. The index is what makes
// simdjson quick: UTF-8, quotes, escapes and control characters are checked there, and passing over a value
// is counting brackets.
class JsonIndex {
 public:
  JsonIndex();
  ~JsonIndex();
  JsonIndex(const JsonIndex&) = delete;
  JsonIndex& operator=(const JsonIndex&) = delete;

  // Null on success, else what is wrong with the text.
  [[nodiscard]] const char* scan(BytesView text);
  // Begin of each element, then the length of the text. Valid until the next scan().
  [[nodiscard]] const std::uint32_t* offsets() const;
  [[nodiscard]] std::size_t count() const;
  // Gives back the memory an uncommonly large text took.
  void trim();

 private:
  std::unique_ptr<simdjson::internal::dom_parser_implementation> parser_;
};

}  // namespace weft
