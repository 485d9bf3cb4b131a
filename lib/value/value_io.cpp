#include "lib/value/value_io.h"

namespace weft {

namespace {

// Room made at the first member or item; most containers need no more, and none are made to hold it in vain.
constexpr std::size_t kMembersExpected = 4;
constexpr std::size_t kItemsExpected = 8;

bool read_at(ValueReader& reader, const Token& first, Value& out, int depth) {
  if (depth > kValueDepthMax) return false;
  switch (first.kind) {
    case Token::Kind::kNull:
      out = Value();
      return true;
    case Token::Kind::kBool:
      out = Value(first.boolean);
      return true;
    case Token::Kind::kInt:
      out = Value(first.integer);
      return true;
    case Token::Kind::kUint:
      out = Value(first.unsigned_integer);
      return true;
    case Token::Kind::kDouble:
      out = Value(first.number);
      return true;
    case Token::Kind::kString:
      out = Value(first.text);
      return true;
    case Token::Kind::kBinary:
      out = Value(Binary{std::string(first.text)});
      return true;
    case Token::Kind::kTimestamp:
      out = Value(Timestamp{first.integer});
      return true;
    case Token::Kind::kBeginArray: {
      out = Value::array();
      while (true) {
        const Token& token = reader.next();
        if (token.kind == Token::Kind::kEndArray) return true;
        Value item;
        if (!read_at(reader, token, item, depth + 1)) return false;
        if (out.empty()) out.reserve(kItemsExpected);
        out.push_back(std::move(item));
      }
    }
    case Token::Kind::kBeginObject: {
      out = Value::object();
      while (true) {
        const Token& token = reader.next();
        if (token.kind == Token::Kind::kEndObject) break;
        if (token.kind != Token::Kind::kKey) return false;
        std::string key(token.text);
        Value value;
        if (!read_at(reader, reader.next(), value, depth + 1)) return false;
        if (out.empty()) out.reserve(kMembersExpected);
        out.append_member(std::move(key), std::move(value));
      }
      out.drop_duplicate_members();
      return true;
    }
    case Token::Kind::kEndArray:
    case Token::Kind::kKey:
    case Token::Kind::kEndObject:
    case Token::Kind::kError:
      return false;
  }
  return false;
}

}  // namespace

bool read_value(ValueReader& reader, const Token& first, Value& out) {
  return read_at(reader, first, out, 0);
}

bool read_value(ValueReader& reader, Value& out) {
  return read_value(reader, reader.next(), out);
}

void write_value(ValueWriter& writer, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      writer.null();
      break;
    case Value::Kind::kBool:
      writer.boolean(value.boolean());
      break;
    case Value::Kind::kInt:
      writer.integer(value.i64());
      break;
    case Value::Kind::kUint:
      writer.unsigned_integer(value.u64());
      break;
    case Value::Kind::kDouble:
      writer.number(value.f64());
      break;
    case Value::Kind::kString:
      writer.string(value.str());
      break;
    case Value::Kind::kBinary:
      writer.binary(value.binary());
      break;
    case Value::Kind::kTimestamp:
      writer.timestamp(value.timestamp().ms);
      break;
    case Value::Kind::kArray:
      writer.begin_array(value.size());
      for (const Value& item : value.items()) write_value(writer, item);
      writer.end_array();
      break;
    case Value::Kind::kObject:
      writer.begin_object(value.size());
      for (const Member& member : value.members()) {
        writer.key(member.key);
        write_value(writer, member.value);
      }
      writer.end_object();
      break;
  }
}

const Token& TreeReader::enter(const Value& value) {
  token_.text = {};
  switch (value.kind()) {
    case Value::Kind::kNull:
      token_.kind = Token::Kind::kNull;
      break;
    case Value::Kind::kBool:
      token_.kind = Token::Kind::kBool;
      token_.boolean = value.boolean();
      break;
    case Value::Kind::kInt:
      token_.kind = Token::Kind::kInt;
      token_.integer = value.i64();
      break;
    case Value::Kind::kUint:
      token_.kind = Token::Kind::kUint;
      token_.unsigned_integer = value.u64();
      break;
    case Value::Kind::kDouble:
      token_.kind = Token::Kind::kDouble;
      token_.number = value.f64();
      break;
    case Value::Kind::kString:
      token_.kind = Token::Kind::kString;
      token_.text = value.str();
      break;
    case Value::Kind::kBinary:
      token_.kind = Token::Kind::kBinary;
      token_.text = value.binary();
      break;
    case Value::Kind::kTimestamp:
      token_.kind = Token::Kind::kTimestamp;
      token_.integer = value.timestamp().ms;
      break;
    case Value::Kind::kArray:
      token_.kind = Token::Kind::kBeginArray;
      levels_.push_back({&value, 0});
      break;
    case Value::Kind::kObject:
      token_.kind = Token::Kind::kBeginObject;
      levels_.push_back({&value, 0});
      break;
  }
  return token_;
}

const Token& TreeReader::next() {
  if (pending_ != nullptr) return enter(*std::exchange(pending_, nullptr));
  if (levels_.empty()) {
    token_.kind = Token::Kind::kError;
    return token_;
  }
  Level& level = levels_.back();
  if (level.index == level.container->size()) {
    token_.kind = level.container->is_array() ? Token::Kind::kEndArray : Token::Kind::kEndObject;
    levels_.pop_back();
    return token_;
  }
  if (level.container->is_array()) return enter(level.container->items()[level.index++]);
  const Member& member = level.container->members()[level.index];
  if (!in_member_) {
    in_member_ = true;
    token_.kind = Token::Kind::kKey;
    token_.text = member.key;
    return token_;
  }
  in_member_ = false;
  ++level.index;
  return enter(member.value);
}

void TreeReader::skip() {
  if (pending_ != nullptr) {
    pending_ = nullptr;
    return;
  }
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (level.index < level.container->size()) ++level.index;
  in_member_ = false;
}

void TreeWriter::begin_array(std::size_t count) {
  open_.push_back(Value::array());
  open_.back().reserve(count);
  open_keys_.push_back(std::move(key_));
}

void TreeWriter::begin_object(std::size_t count) {
  open_.push_back(Value::object());
  open_.back().reserve(count);
  open_keys_.push_back(std::move(key_));
}

void TreeWriter::put(Value value) {
  if (open_.empty()) {
    root_ = std::move(value);
  } else if (open_.back().is_array()) {
    open_.back().push_back(std::move(value));
  } else {
    open_.back().append_member(std::move(key_), std::move(value));
  }
}

void TreeWriter::close() {
  Value done = std::move(open_.back());
  open_.pop_back();
  key_ = std::move(open_keys_.back());
  open_keys_.pop_back();
  put(std::move(done));
}

}  // namespace weft
