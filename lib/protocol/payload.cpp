#include "lib/protocol/payload.h"

#include "lib/protocol/serializer.h"

namespace weft {

Payload Payload::slice(const Serializer& serializer, BytesView bytes, std::shared_ptr<const void> owner) {
  Payload payload;
  payload.set_slice(serializer, bytes);
  payload.owner_ = std::move(owner);
  return payload;
}

void Payload::retain() {
  if (is_retained()) return;
  if (kind_ == Kind::kObject) {
    owner_ = ops_->copy(object_);
    object_ = owner_.get();
    return;
  }
  const std::shared_ptr<char[]> bytes(new char[bytes_.size() + kReadPadding]);
  std::memcpy(bytes.get(), bytes_.data(), bytes_.size());
  std::memset(bytes.get() + bytes_.size(), 0, kReadPadding);
  bytes_ = {bytes.get(), bytes_.size()};
  owner_ = bytes;
}

std::optional<Error> Payload::decode() const {
  if (kind_ == Kind::kAbsent || kind_ == Kind::kTree || decoded_) return std::nullopt;
  if (kind_ == Kind::kObject) {
    TreeWriter writer;
    ops_->write(writer, object_);
    tree_ = writer.take();
    decoded_ = true;
    return std::nullopt;
  }
  std::optional<Error> failure;
  serializer_->read(bytes_, [&](ValueReader& reader) {
    if (!read_value(reader, tree_)) {
      failure =
          Error(ErrorClass::kBase, "Malformed value: " + std::string(reader.error()), "MALFORMED_VALUE");
    }
  });
  if (failure) {
    tree_ = Value();
  } else {
    decoded_ = true;
  }
  return failure;
}

Result<Value> Payload::to_value() const {
  if (auto failure = decode()) return *std::move(failure);
  return tree_;
}

const Value& Payload::value() const {
  if (const auto failure = decode()) failure->raise();
  return tree_;
}

Value Payload::take_value() && {
  (void)value();
  return std::move(tree_);
}

std::optional<Error> Payload::read(FunctionRef<void(TypedReader&)> use) const {
  std::optional<Error> failure;
  const auto run = [&](ValueReader& reader) {
    TypedReader typed(reader);
    use(typed);
    if (typed.is_malformed()) {
      failure = Error(ErrorClass::kBase, "Malformed value: " + std::string(typed.malformed_reason()),
                      "MALFORMED_VALUE");
    } else if (!typed.ok()) {
      failure = validation_error(typed.violations());
    }
  };
  if (kind_ == Kind::kSlice && !decoded_) {
    serializer_->read(bytes_, run);
  } else {
    TreeReader reader(value());
    run(reader);
  }
  return failure;
}

void Payload::write(ValueWriter& writer) const {
  if (const auto failure = try_write(writer)) failure->raise();
}

std::optional<Error> Payload::try_write(ValueWriter& writer) const {
  if (kind_ == Kind::kObject) {
    ops_->write(writer, object_);
    return std::nullopt;
  }
  if (auto failure = decode()) return failure;
  write_value(writer, tree_);
  return std::nullopt;
}

BytesView Payload::raw(const Serializer& serializer) const {
  if (kind_ != Kind::kSlice) return {};
  return serializer_ == &serializer || serializer_->name() == serializer.name() ? bytes_ : BytesView();
}

bool Payload::is_empty_object() const {
  switch (kind_) {
    case Kind::kAbsent:
      return true;
    case Kind::kTree:
      return tree_.is_null() || (tree_.is_object() && tree_.empty());
    case Kind::kSlice:
      return bytes_ == "{}" || bytes_ == "\x80" || bytes_ == "null" || bytes_ == "\xc0";
    case Kind::kObject:
      return false;
  }
  return false;
}

Error validation_error(const std::vector<Violation>& violations) {
  Value data = Value::array();
  for (const Violation& violation : violations) {
    Value row{{"type", violation.type}, {"message", violation.message}};
    if (!violation.field.empty()) row.set("field", violation.field);
    if (!violation.actual.empty()) row.set("actual", violation.actual);
    data.push_back(std::move(row));
  }
  return Error(ErrorClass::kValidation, "Parameters validation error!", {}, std::move(data));
}

}  // namespace weft
