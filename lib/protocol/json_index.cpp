#include "lib/protocol/json_index.h"

#include <simdjson.h>

#include <algorithm>

namespace weft {

JsonIndex::JsonIndex() = default;
JsonIndex::~JsonIndex() = default;

const char* JsonIndex::scan(BytesView text) {
  constexpr std::size_t kCapacityMin = 4096;
  if (text.empty()) return "no value";
  if (parser_ == nullptr) {
    if (simdjson::get_active_implementation()->create_dom_parser_implementation(
            std::max(text.size(), kCapacityMin), 1, parser_) != simdjson::SUCCESS) {
      parser_.reset();
      return "text is too long";
    }
  } else if (text.size() > parser_->capacity()) {
    const std::size_t capacity = std::max(text.size(), parser_->capacity() * 2);
    if (parser_->allocate(capacity, 1) != simdjson::SUCCESS) {
      parser_.reset();
      return "text is too long";
    }
  }
  switch (parser_->stage1(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                          simdjson::stage1_mode::regular)) {
    case simdjson::SUCCESS:
      parser_->structural_indexes[parser_->n_structural_indexes] = static_cast<std::uint32_t>(text.size());
      return nullptr;
    case simdjson::UTF8_ERROR:
      return "text is not valid UTF-8";
    case simdjson::UNCLOSED_STRING:
      return "a string does not end";
    case simdjson::UNESCAPED_CHARS:
      return "a control character in a string";
    case simdjson::EMPTY:
      return "no value";
    default:
      return "text is malformed";
  }
}

const std::uint32_t* JsonIndex::offsets() const {
  return parser_->structural_indexes.get();
}

std::size_t JsonIndex::count() const {
  return parser_->n_structural_indexes;
}

void JsonIndex::trim() {
  constexpr std::size_t kKeptMax = 1 << 20;  // Four bytes of index for each.
  if (parser_ != nullptr && parser_->capacity() > kKeptMax) parser_.reset();
}

}  // namespace weft
