// JSON as weft reads it against JSON as nlohmann's library reads it: both take it or neither, and to the same
// values.

#include "tests/fuzz/fuzz.h"

#include <nlohmann/json.hpp>
#include <string>

#include "lib/value/value_io.h"

namespace weft::fuzz {

namespace {

using Other = nlohmann::json;

// Where the two differ on purpose: the byte order mark (theirs skips it), surrogates without their other half
// (ours takes them, as JavaScript does), numbers beyond the range of a double (theirs refuses them).
bool is_by_design(BytesView text) {
  if (text.starts_with("\xef\xbb\xbf") || text.find('\xed') != BytesView::npos) return true;
  for (std::size_t at = text.find("\\u"); at != BytesView::npos; at = text.find("\\u", at + 2)) {
    if (at + 2 < text.size() && (text[at + 2] == 'd' || text[at + 2] == 'D')) return true;
  }
  return false;
}

int depth_of(BytesView text) {
  int depth = 0, deepest = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && in_text)
      ++i;
    else if (text[i] == '"')
      in_text = !in_text;
    else if (!in_text && (text[i] == '[' || text[i] == '{'))
      deepest = std::max(deepest, ++depth);
    else if (!in_text && (text[i] == ']' || text[i] == '}'))
      --depth;
  }
  return deepest;
}

bool same(const Value& ours, const Other& theirs) {
  switch (theirs.type()) {
    case Other::value_t::null:
      return ours.is_null();
    case Other::value_t::boolean:
      return ours.is_bool() && ours.boolean() == theirs.get<bool>();
    case Other::value_t::string:
      return ours.is_string() && ours.str() == theirs.get_ref<const std::string&>();
    case Other::value_t::array: {
      if (!ours.is_array() || ours.size() != theirs.size()) return false;
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        if (!same(ours[i], theirs[i])) return false;
      }
      return true;
    }
    case Other::value_t::object: {
      if (!ours.is_object() || ours.size() != theirs.size()) return false;
      for (const auto& [key, value] : theirs.items()) {
        const Value* member = ours.find(key);
        if (member == nullptr || !same(*member, value)) return false;
      }
      return true;
    }
    case Other::value_t::number_integer:
      return ours.is_integer() ? ours.i64_or(1) == theirs.get<std::int64_t>()
                               : ours.is_number() && ours.f64() == theirs.get<double>();
    case Other::value_t::number_unsigned:
      return ours.is_integer() ? ours == Value(theirs.get<std::uint64_t>())
                               : ours.is_number() && ours.f64() == theirs.get<double>();
    case Other::value_t::number_float:
      return ours.is_number() && ours.f64() == theirs.get<double>();
    default:
      return false;
  }
}

void compare(BytesView input) {
  if (is_by_design(input)) return;
  const Padded message(input);
  Value ours;
  const Result<> read = json().decode(message.view(), ours);
  bool out_of_range = false;
  Other theirs(Other::value_t::discarded);
  try {
    theirs = Other::parse(input.begin(), input.end());
  } catch (const Other::out_of_range&) {
    out_of_range = true;
  } catch (const Other::parse_error&) {
    theirs = Other(Other::value_t::discarded);
  }
  if (out_of_range) return;
  if (theirs.is_discarded()) {
    WEFT_ASSERT(!read.ok());
  } else if (depth_of(input) <= kValueDepthMax) {
    WEFT_ASSERT(read.ok() && same(ours, theirs));
  }
}

constexpr Target kTargets[] = {{"json.differential", compare}};

}  // namespace

std::span<const Target> differential_targets() {
  return kTargets;
}

}  // namespace weft::fuzz
