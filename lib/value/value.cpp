#include "lib/value/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

namespace weft {

namespace {

const Value kNullValue;

[[noreturn]] void wrong_kind(std::string_view wanted, Value::Kind actual) {
  throw ValueError("expected " + std::string(wanted) + ", got " + std::string(to_string(actual)));
}

// Exact conversions of a double that has no fraction.
bool to_int64(double number, std::int64_t& out) {
  if (!(number >= -0x1p63 && number < 0x1p63) || std::trunc(number) != number) return false;
  out = static_cast<std::int64_t>(number);
  return true;
}

}  // namespace

std::string_view to_string(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kNull:
      return "null";
    case Value::Kind::kBool:
      return "boolean";
    case Value::Kind::kInt:
    case Value::Kind::kUint:
      return "integer";
    case Value::Kind::kDouble:
      return "number";
    case Value::Kind::kString:
      return "string";
    case Value::Kind::kBinary:
      return "binary";
    case Value::Kind::kTimestamp:
      return "timestamp";
    case Value::Kind::kArray:
      return "array";
    case Value::Kind::kObject:
      return "object";
  }
  return "null";
}

Field::Field(std::string_view key, Value value) : key_(key), value_(new Value(std::move(value))) {}
Field::Field(Field&&) noexcept = default;
Field::~Field() = default;
Value Field::take() && {
  return std::move(*value_);
}

void Value::begin_fields(std::size_t count) {
  set_kind(Kind::kObject);
  rep_.word.object = new std::vector<Member>();
  rep_.word.object->reserve(count);
}

void Value::add_field(Field& field) {
  const std::string_view key = field.key();
  set(key, std::move(field).take());
}

Value::Value(const Value& other) : rep_(other.rep_) {
  if (!other.owns_heap()) return;
  switch (kind()) {
    case Kind::kString:
    case Kind::kBinary:
      rep_.word.text = new std::string(*other.rep_.word.text);
      break;
    case Kind::kArray:
      rep_.word.array = new std::vector<Value>(*other.rep_.word.array);
      break;
    case Kind::kObject:
      rep_.word.object = new std::vector<Member>(*other.rep_.word.object);
      break;
    default:
      break;
  }
}

Value& Value::operator=(const Value& other) {
  if (this != &other) *this = Value(other);
  return *this;
}

Value& Value::operator=(Value&& other) noexcept {
  if (this != &other) {
    // `other` may live inside this value: take it out before the old content goes.
    const Rep taken = other.rep_;
    other.set_kind(Kind::kNull);
    if (owns_heap()) destroy();
    rep_ = taken;
  }
  return *this;
}

void Value::destroy() noexcept {
  switch (kind()) {
    case Kind::kString:
    case Kind::kBinary:
      delete rep_.word.text;
      break;
    case Kind::kArray:
      delete rep_.word.array;
      break;
    case Kind::kObject:
      delete rep_.word.object;
      break;
    default:
      break;
  }
}

Value Value::array() {
  Value value;
  value.rep_.word.array = new std::vector<Value>();
  value.rep_.word.kind = static_cast<std::uint8_t>(Kind::kArray);
  return value;
}

Value Value::object() {
  Value value;
  value.rep_.word.object = new std::vector<Member>();
  value.rep_.word.kind = static_cast<std::uint8_t>(Kind::kObject);
  return value;
}

void Value::set_string(std::string_view text) {
  if (text.size() <= kInlineTextMax) {
    rep_.text.kind = static_cast<std::uint8_t>(Kind::kString);
    rep_.text.size = static_cast<std::uint8_t>(text.size());
    if (!text.empty()) std::memcpy(rep_.text.bytes, text.data(), text.size());
    return;
  }
  auto* held = new std::string(text);
  set_kind(Kind::kString, kOnHeap);
  rep_.word.text = held;
}

void Value::set_binary(Binary value) {
  auto* held = new std::string(std::move(value.bytes));
  set_kind(Kind::kBinary, kOnHeap);
  rep_.word.text = held;
}

bool Value::boolean() const {
  if (!is_bool()) wrong_kind("boolean", kind());
  return rep_.word.boolean;
}

std::int64_t Value::i64() const {
  if (kind() == Kind::kInt) return rep_.word.integer;
  std::int64_t integer = 0;
  if (kind() == Kind::kDouble && to_int64(rep_.word.number, integer)) return integer;
  if (kind() == Kind::kDouble)
    throw ValueError("expected integer, got a number with a fraction or out of range");
  if (kind() == Kind::kUint) throw ValueError("expected a signed integer, got one above 2^63-1");
  wrong_kind("integer", kind());
}

std::uint64_t Value::u64() const {
  if (kind() == Kind::kUint) return rep_.word.unsigned_integer;
  if (kind() == Kind::kDouble && rep_.word.number >= 0x1p63 && rep_.word.number < 0x1p64) {
    return static_cast<std::uint64_t>(rep_.word.number);
  }
  const std::int64_t integer = i64();
  if (integer < 0) throw ValueError("expected an unsigned integer, got a negative one");
  return static_cast<std::uint64_t>(integer);
}

double Value::f64() const {
  switch (kind()) {
    case Kind::kInt:
      return static_cast<double>(rep_.word.integer);
    case Kind::kUint:
      return static_cast<double>(rep_.word.unsigned_integer);
    case Kind::kDouble:
      return rep_.word.number;
    default:
      wrong_kind("number", kind());
  }
}

std::string_view Value::str() const {
  if (!is_string()) wrong_kind("string", kind());
  if (rep_.tag.extra == kOnHeap) return *rep_.word.text;
  return {rep_.text.bytes, rep_.text.size};
}

std::string_view Value::binary() const {
  if (!is_binary()) wrong_kind("binary", kind());
  return *rep_.word.text;
}

Timestamp Value::timestamp() const {
  if (!is_timestamp()) wrong_kind("timestamp", kind());
  return {rep_.word.integer};
}

std::int64_t Value::i64_or(std::int64_t fallback) const {
  std::int64_t integer = 0;
  if (kind() == Kind::kInt) return rep_.word.integer;
  if (kind() == Kind::kDouble && to_int64(rep_.word.number, integer)) return integer;
  return fallback;
}

double Value::f64_or(double fallback) const {
  return is_number() ? f64() : fallback;
}

std::size_t Value::size() const {
  if (is_array()) return rep_.word.array->size();
  if (is_object()) return rep_.word.object->size();
  return 0;
}

std::span<const Value> Value::items() const {
  return is_array() ? std::span<const Value>(*rep_.word.array) : std::span<const Value>();
}
std::span<Value> Value::items() {
  return is_array() ? std::span<Value>(*rep_.word.array) : std::span<Value>();
}
std::span<const Member> Value::members() const {
  return is_object() ? std::span<const Member>(*rep_.word.object) : std::span<const Member>();
}
std::span<Member> Value::members() {
  return is_object() ? std::span<Member>(*rep_.word.object) : std::span<Member>();
}

const Value* Value::find(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Value* Value::find(std::string_view key) {
  for (Member& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

const Value* Value::find_path(std::string_view path) const {
  const Value* at = this;
  while (!path.empty()) {
    if (path.front() == '.' || path.front() == ']') {
      path.remove_prefix(1);
      continue;
    }
    if (path.front() == '[') path.remove_prefix(1);
    const std::size_t end = std::min(path.find_first_of(".[]"), path.size());
    const std::string_view step = path.substr(0, end);
    path.remove_prefix(end);
    if (at->is_array()) {
      std::size_t index = 0;
      const auto [rest, error] = std::from_chars(step.data(), step.data() + step.size(), index);
      if (error != std::errc() || rest != step.data() + step.size() || index >= at->size()) return nullptr;
      at = &at->items()[index];
    } else {
      at = at->find(step);
      if (at == nullptr) return nullptr;
    }
  }
  return at;
}

const Value& Value::operator[](std::string_view key) const {
  const Value* found = find(key);
  return found != nullptr ? *found : kNullValue;
}

const Value& Value::operator[](std::size_t index) const {
  const auto array = items();
  return index < array.size() ? array[index] : kNullValue;
}

Value& Value::operator[](std::size_t index) {
  if (!is_array()) wrong_kind("array", kind());
  if (index >= size()) {
    throw ValueError("index " + std::to_string(index) + " is beyond the array's " + std::to_string(size()) +
                     " items");
  }
  return (*rep_.word.array)[index];
}

std::vector<Member>& Value::make_object() {
  if (is_null()) *this = object();
  if (!is_object()) wrong_kind("object", kind());
  return *rep_.word.object;
}

Value& Value::operator[](std::string_view key) {
  auto& object = make_object();
  if (Value* found = find(key)) return *found;
  return object.emplace_back(Member{std::string(key), Value()}).value;
}

Value& Value::set(std::string_view key, Value value) {
  return (*this)[key] = std::move(value);
}

Value& Value::append_member(std::string key, Value value) {
  return make_object().emplace_back(Member{std::move(key), std::move(value)}).value;
}

void Value::drop_duplicate_members() {
  if (!is_object()) return;
  auto& object = *rep_.word.object;
  if (object.size() < 2) return;
  if (object.size() <= 16) {  // Comparing pairs is quicker than a table, and needs no memory.
    for (std::size_t i = 1; i < object.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (object[k].key != object[i].key) continue;
        object[k].value = std::move(object[i].value);
        object.erase(object.begin() + static_cast<std::ptrdiff_t>(i));
        --i;
        break;
      }
    }
    return;
  }
  std::unordered_map<std::string_view, std::size_t> places;
  places.reserve(object.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < object.size(); ++i) {
    if (const auto found = places.find(object[i].key); found != places.end()) {
      object[found->second].value = std::move(object[i].value);
      continue;
    }
    if (kept != i) object[kept] = std::move(object[i]);
    places.emplace(object[kept].key, kept);
    ++kept;
  }
  object.resize(kept);
}

bool Value::erase(std::string_view key) {
  if (!is_object()) return false;
  return std::erase_if(*rep_.word.object, [key](const Member& member) { return member.key == key; }) > 0;
}

Value& Value::push_back(Value value) {
  if (is_null()) *this = array();
  if (!is_array()) wrong_kind("array", kind());
  return rep_.word.array->emplace_back(std::move(value));
}

void Value::reserve(std::size_t count) {
  if (is_array()) rep_.word.array->reserve(count);
  if (is_object()) rep_.word.object->reserve(count);
}

void Value::merge(const Value& other) {
  for (const Member& member : other.members()) set(member.key, member.value);
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.kind() == b.kind()) {
      if (a.kind() == Value::Kind::kDouble) return a.rep_.word.number == b.rep_.word.number;
      return a.rep_.word.integer == b.rep_.word.integer;
    }
    if (a.is_integer() && b.is_integer()) return false;  // kUint is above every kInt.
    return a.f64() == b.f64();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kBool:
      return a.rep_.word.boolean == b.rep_.word.boolean;
    case Value::Kind::kString:
      return a.str() == b.str();
    case Value::Kind::kBinary:
      return a.binary() == b.binary();
    case Value::Kind::kTimestamp:
      return a.rep_.word.integer == b.rep_.word.integer;
    case Value::Kind::kArray:
      return std::ranges::equal(a.items(), b.items());
    case Value::Kind::kObject:
      return a.size() == b.size() && std::ranges::all_of(a.members(), [&b](const Member& member) {
               const Value* found = b.find(member.key);
               return found != nullptr && *found == member.value;
             });
    default:
      return true;
  }
}

}  // namespace weft
