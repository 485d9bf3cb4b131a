#include "tools/cli/params.h"

#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "lib/protocol/serializer.h"

namespace weft::cli {

namespace {

Error usage(std::string message) {
  return Error(ErrorClass::kValidation, std::move(message), "USAGE");
}

std::size_t digits(std::string_view text, std::size_t at) {
  std::size_t count = 0;
  while (at + count < text.size() && text[at + count] >= '0' && text[at + count] <= '9') ++count;
  return count;
}

enum class NumberForm { kNone, kInteger, kReal };

// JSON's grammar of numbers.
NumberForm number_form(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t whole = digits(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return NumberForm::kNone;
  at += whole;
  if (at == text.size()) return NumberForm::kInteger;
  if (text[at] == '.') {
    const std::size_t fraction = digits(text, ++at);
    if (fraction == 0) return NumberForm::kNone;
    at += fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t exponent = digits(text, at);
    if (exponent == 0) return NumberForm::kNone;
    at += exponent;
  }
  return at == text.size() ? NumberForm::kReal : NumberForm::kNone;
}

template <typename Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_quoted(std::string_view word) {
  return word.size() >= 2 && word.front() == word.back() && (word.front() == '"' || word.front() == '\'');
}

// Puts named members into an object, and knows which were put by name already.
class MemberWriter {
 public:
  explicit MemberWriter(Value& root) : root_(root) {}

  Result<> put(std::string_view path, Value value) {
    const bool to_list = path.ends_with("[]");
    const std::string_view name = to_list ? path.substr(0, path.size() - 2) : path;
    Value* at = &root_;
    std::size_t begin = 0;
    while (true) {
      const std::size_t dot = name.find('.', begin);
      const std::string_view key = name.substr(begin, dot == name.npos ? name.npos : dot - begin);
      if (key.empty()) {
        return usage("--" + std::string(path) +
                     ": the name of a member is empty. Write --name, --outer.inner or --list[].");
      }
      if (!at->is_object()) {
        return usage("--" + std::string(path) + ": '" + std::string(name.substr(0, begin - 1)) +
                     "' has a value already, and cannot have members as well.");
      }
      if (dot == name.npos) return put_leaf(*at, key, path, to_list, std::move(value));
      Value* inner = at->find(key);
      if (inner == nullptr) inner = &at->set(key, Value::object());
      at = inner;
      begin = dot + 1;
    }
  }

 private:
  Result<> put_leaf(Value& object, std::string_view key, std::string_view path, bool to_list, Value value) {
    Value* known = object.find(key);
    if (to_list) {
      if (known == nullptr) known = &object.set(key, Value::array());
      if (!known->is_array()) {
        return usage("--" + std::string(path) + ": '" + std::string(path.substr(0, path.size() - 2)) +
                     "' has a value that is no list.");
      }
      paths_.emplace(path);
      known->push_back(std::move(value));
      return {};
    }
    // Over a member of the JSON object that stands beside, but never over what another word made.
    const bool is_taken = paths_.contains(std::string(path) + "[]") || has_inner(path);
    if (!paths_.emplace(path).second || is_taken) {
      return usage("--" + std::string(path) + " is given twice. Write --" + std::string(path) +
                   "[] VALUE for each item of a list.");
    }
    if (known != nullptr) {
      *known = std::move(value);
    } else {
      object.set(key, std::move(value));
    }
    return {};
  }

  [[nodiscard]] bool has_inner(std::string_view path) const {
    const std::string prefix = std::string(path) + ".";
    const auto next = paths_.lower_bound(prefix);
    return next != paths_.end() && next->starts_with(prefix);
  }

  Value& root_;
  std::set<std::string> paths_;
};

// "--name", "--name=value", "--name:=JSON".
struct Named {
  std::string_view name;
  std::optional<std::string_view> value;
  bool is_json = false;
};

Named split_named(std::string_view word) {
  word.remove_prefix(2);
  const std::size_t equals = word.find('=');
  if (equals == word.npos) return {.name = word, .value = {}};
  Named named{.name = word.substr(0, equals), .value = word.substr(equals + 1)};
  if (named.name.ends_with(':')) {
    named.name.remove_suffix(1);
    named.is_json = true;
  }
  return named;
}

bool is_name(std::string_view word) {
  return word.size() > 2 && word.starts_with("--");
}

Result<Value> read_whole(const std::string& word, ReadSource read) {
  std::string text = word;
  if (word == "-" || word.starts_with('@')) {
    auto content = read(word);
    if (!content) return content.error();
    text = std::move(*content);
  }
  auto value = parse_json(text);
  if (value) return value;
  if (text != word)
    return usage((word == "-" ? "Standard input" : word.substr(1)) +
                 " holds no JSON: " + value.error().message());
  if (word.starts_with('-')) {
    return usage("'" + word + "' is no option. Params are written --name value, or as one JSON argument.");
  }
  return usage("'" + word + "' is no JSON. " + value.error().message() +
               " Write params as one JSON argument in quotes, '{\"name\":\"value\"}', or as --name value.");
}

}  // namespace

Value parse_scalar(std::string_view word) {
  if (is_quoted(word)) return Value(word.substr(1, word.size() - 2));
  if (word == "true") return Value(true);
  if (word == "false") return Value(false);
  switch (number_form(word)) {
    case NumberForm::kInteger:
      if (const auto number = read_number<std::int64_t>(word)) return Value(*number);
      if (const auto number = read_number<std::uint64_t>(word)) return Value(*number);
      break;  // Its digits would be lost.
    case NumberForm::kReal:
      if (const auto number = read_number<double>(word); number && std::isfinite(*number))
        return Value(*number);
      break;
    case NumberForm::kNone:
      break;
  }
  return Value(word);
}

Result<std::optional<Value>> parse_params(std::span<const std::string> words, ReadSource read) {
  if (words.empty()) return std::optional<Value>();

  // The JSON argument first, wherever it stands: members go over it.
  std::optional<Value> whole;
  struct Put {
    std::string_view path;
    Value value;
  };
  std::vector<Put> puts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!is_name(word)) {
      if (whole) {
        return usage("'" + word +
                     "': there is a JSON argument already. A text of several words needs quotes, "
                     "and a member its name: --name value.");
      }
      auto value = read_whole(word, read);
      if (!value) return value.error();
      whole = std::move(*value);
      continue;
    }
    Named named = split_named(word);
    if (named.is_json) {
      auto value = parse_json(*named.value);
      if (!value) {
        return usage("--" + std::string(named.name) + ":=" + std::string(*named.value) + " is no JSON. " +
                     value.error().message());
      }
      puts.push_back({named.name, std::move(*value)});
    } else if (named.value) {
      puts.push_back({named.name, parse_scalar(*named.value)});
    } else if (i + 1 < words.size() && !is_name(words[i + 1])) {
      puts.push_back({named.name, parse_scalar(words[++i])});
    } else if (named.name.starts_with("no-") && named.name.size() > 3) {
      puts.push_back({named.name.substr(3), Value(false)});
    } else {
      puts.push_back({named.name, Value(true)});
    }
  }
  if (puts.empty()) return whole;
  if (!whole) whole = Value::object();
  if (!whole->is_object()) {
    return usage("--" + std::string(puts.front().path) +
                 " needs params that are an object; the JSON argument is none.");
  }
  MemberWriter writer(*whole);
  for (Put& put : puts) {
    if (auto done = writer.put(put.path, std::move(put.value)); !done) return done.error();
  }
  return whole;
}

}  // namespace weft::cli
