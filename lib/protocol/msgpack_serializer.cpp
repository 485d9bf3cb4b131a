#include "lib/protocol/msgpack_serializer.h"

#include <cmath>

#include "lib/protocol/envelope.h"
#include "lib/protocol/msgpack_cursor.h"
#include "lib/protocol/msgpack_writer.h"
#include "lib/protocol/serializer_errors.h"
#include "lib/protocol/text.h"

namespace weft {

namespace {

// The way through the members of a message's envelope: see envelope.h.
class MsgpackFields {
 public:
  MsgpackFields(const Serializer& serializer, BytesView message) : serializer_(serializer) {
    cursor_.reset(message);
    if (!cursor_.take(token_, left_)) {
      failure_ = cursor_.failure();
    } else if (token_.kind != Token::Kind::kBeginObject) {
      failure_ = "not a map";
    }
  }

  [[nodiscard]] const char* failure() const { return failure_; }

  bool next(FieldId& field) {
    if (failure_ != nullptr || left_ == 0) return false;
    --left_;
    std::uint32_t count = 0;
    if (!cursor_.take(token_, count)) return fail(cursor_.failure());
    switch (token_.kind) {
      case Token::Kind::kString:
      case Token::Kind::kBinary:
        field = field_id(token_.text);
        return field != FieldId::kOther || is_text(token_.text) || fail("a key is not valid UTF-8");
      case Token::Kind::kInt:
      case Token::Kind::kUint:
        field = FieldId::kOther;
        return true;
      default:
        return fail("a key that is no text");
    }
  }

  Token::Kind shape() const {
    const auto head = static_cast<std::uint8_t>(cursor_.peek());
    if (head == 0xc0) return Token::Kind::kNull;
    if ((head >= 0x80 && head < 0x90) || head == 0xde || head == 0xdf) return Token::Kind::kBeginObject;
    if ((head >= 0x90 && head < 0xa0) || head == 0xdc || head == 0xdd) return Token::Kind::kBeginArray;
    return Token::Kind::kString;
  }

  const Token* scalar() {
    const Token::Kind kind = shape();
    if (kind == Token::Kind::kBeginObject || kind == Token::Kind::kBeginArray) {
      skip();
      return nullptr;
    }
    std::uint32_t count = 0;
    bool good = cursor_.take(token_, count) || fail(cursor_.failure());
    if (good && token_.kind == Token::Kind::kString) {
      good = is_text(token_.text) || fail("text is not valid UTF-8");
    }
    return good ? &token_ : nullptr;
  }

  void slice(Payload& out) {
    BytesView value;
    if (cursor_.take_value(value)) {
      out.set_slice(serializer_, value);
    } else {
      (void)fail(cursor_.failure());
    }
  }

  void skip() {
    BytesView value;
    if (!cursor_.take_value(value)) (void)fail(cursor_.failure());
  }

 private:
  bool fail(const char* why) {
    failure_ = why;
    return false;
  }

  const Serializer& serializer_;
  MsgpackCursor cursor_;
  Token token_;
  std::uint32_t left_ = 0;
  const char* failure_ = nullptr;
};

// A key as it stands in the message: a str of up to 31 bytes, its length in the first byte.
template <std::size_t kSize>
struct Key {
  consteval explicit Key(const char (&name)[kSize]) {
    static_assert(kSize - 1 < 32);
    bytes[0] = static_cast<char>(0xa0 | (kSize - 1));
    for (std::size_t i = 0; i + 1 < kSize; ++i) bytes[i + 1] = name[i];
  }
  char bytes[kSize] = {};
};

class MsgpackPacketWriter {
 public:
  // `count`: the members that will be written.
  MsgpackPacketWriter(const Serializer& serializer, Buffer& out, int count)
      : serializer_(serializer), out_(out), size_before_(out.size()), writer_(out) {
    writer_.begin_object(static_cast<std::size_t>(count));
    writer_.end_object();  // Nesting is counted from a payload's root, as readers do.
  }

  template <std::size_t kSize>
  void key(const Key<kSize>& name) {
    out_.append({name.bytes, kSize});
  }
  void text(std::string_view value) { writer_.string(value); }
  // Text that is empty when there is none.
  void text_or_null(std::string_view value) {
    if (value.empty()) {
      writer_.null();
    } else {
      writer_.string(value);
    }
  }
  void integer(std::int64_t value) { writer_.integer(value); }
  // Whole milliseconds are an integer to every peer, whatever type they have here.
  void number(double value) {
    constexpr double kExactMax = 0x1p53;
    if (value >= 0 && value <= kExactMax && std::trunc(value) == value && !std::signbit(value)) {
      writer_.integer(static_cast<std::int64_t>(value));
    } else {
      writer_.number(value);
    }
  }
  void boolean(bool value) { writer_.boolean(value); }
  void null() { writer_.null(); }

  void payload(const Payload& value) {
    if (const BytesView bytes = value.raw(serializer_); !bytes.empty()) return out_.append(bytes);
    if (auto failure = value.try_write(writer_)) error_ = std::move(failure);
  }
  // meta and headers: objects that are never left out.
  void object(const Payload& value) {
    if (value.is_empty_object()) {
      out_.push_back('\x80');
    } else {
      payload(value);
    }
  }

  static constexpr int kContextFields = 5;
  void context(int level, std::optional<bool> tracing, std::string_view parent_id,
               std::string_view request_id, std::string_view caller) {
    key(Key("level"));
    integer(level);
    key(Key("tracing"));
    if (tracing) {
      boolean(*tracing);
    } else {
      null();
    }
    key(Key("parentID"));
    text_or_null(parent_id);
    key(Key("requestID"));
    text_or_null(request_id);
    key(Key("caller"));
    text_or_null(caller);
  }

  Result<> finish(std::string_view ver, std::string_view sender) {
    key(Key("ver"));
    text(ver);
    key(Key("sender"));
    text(sender);
    if (writer_.failure() != nullptr && !error_) error_ = not_encodable("MsgPack", writer_.failure());
    if (!error_) return {};
    out_.truncate(size_before_);
    return *std::move(error_);
  }

 private:
  const Serializer& serializer_;
  Buffer& out_;
  std::size_t size_before_;
  MsgpackWriter writer_;
  std::optional<Error> error_;
};

}  // namespace

template <typename Packet>
Result<> MsgpackSerializer::decode_packet(BytesView message, Packet& out) const {
  MsgpackFields fields(*this, message);
  const char* const missing = read_packet(fields, out);
  if (fields.failure() != nullptr) return malformed_packet(name(), fields.failure());
  if (missing != nullptr) return malformed_packet(name(), missing);
  return {};
}

Result<> MsgpackSerializer::decode(BytesView message, RequestPacket& out) const {
  return decode_packet(message, out);
}

Result<> MsgpackSerializer::decode(BytesView message, ResponsePacket& out) const {
  return decode_packet(message, out);
}

Result<> MsgpackSerializer::decode(BytesView message, EventPacket& out) const {
  return decode_packet(message, out);
}

Result<> MsgpackSerializer::decode(BytesView message, Value& out) const {
  const ReaderPool<MsgpackReader>::Lent reader(readers_);
  reader->start(message);
  if (!read_value(*reader, out)) return malformed_packet(name(), reader->error());
  return {};
}

void MsgpackSerializer::read(BytesView bytes, FunctionRef<void(ValueReader&)> use) const {
  const ReaderPool<MsgpackReader>::Lent reader(readers_);
  reader->start(bytes);
  use(*reader);
}

Result<> MsgpackSerializer::encode(const RequestPacket& packet, Buffer& out) const {
  constexpr int kAlways = 6 + MsgpackPacketWriter::kContextFields;  // id action meta headers ver sender
  MsgpackPacketWriter writer(*this, out,
                             kAlways + int{!packet.params.is_absent()} + int{packet.timeout_ms.has_value()} +
                                 int{packet.has_stream} + int{packet.seq.has_value()});
  writer.key(Key("id"));
  writer.text(packet.id);
  writer.key(Key("action"));
  writer.text(packet.action);
  if (!packet.params.is_absent()) {
    writer.key(Key("params"));
    writer.payload(packet.params);
  }
  writer.key(Key("meta"));
  writer.object(packet.meta);
  writer.key(Key("headers"));
  writer.object(packet.headers);
  if (packet.timeout_ms) {
    writer.key(Key("timeout"));
    writer.number(*packet.timeout_ms);
  }
  writer.context(packet.level, packet.tracing, packet.parent_id, packet.request_id, packet.caller);
  if (packet.has_stream) {
    writer.key(Key("stream"));
    writer.boolean(packet.stream);
  }
  if (packet.seq) {
    writer.key(Key("seq"));
    writer.integer(*packet.seq);
  }
  return writer.finish(packet.ver, packet.sender);
}

Result<> MsgpackSerializer::encode(const ResponsePacket& packet, Buffer& out) const {
  constexpr int kAlways = 6;  // id meta headers success ver sender
  const bool has_data = !packet.data.is_absent() || !packet.success;
  MsgpackPacketWriter writer(*this, out,
                             kAlways + int{has_data} + int{!packet.error.is_absent()} +
                                 int{packet.stream.has_value()} + int{packet.seq.has_value()});
  writer.key(Key("id"));
  writer.text(packet.id);
  writer.key(Key("meta"));
  writer.object(packet.meta);
  writer.key(Key("headers"));
  if (packet.headers_null) {
    writer.null();
  } else {
    writer.object(packet.headers);
  }
  writer.key(Key("success"));
  writer.boolean(packet.success);
  if (has_data) {
    writer.key(Key("data"));
    writer.payload(packet.data);
  }
  if (!packet.error.is_absent()) {
    writer.key(Key("error"));
    writer.payload(packet.error);
  }
  if (packet.stream) {
    writer.key(Key("stream"));
    writer.boolean(*packet.stream);
  }
  if (packet.seq) {
    writer.key(Key("seq"));
    writer.integer(*packet.seq);
  }
  return writer.finish(packet.ver, packet.sender);
}

Result<> MsgpackSerializer::encode(const EventPacket& packet, Buffer& out) const {
  // id event data broadcast meta headers needAck ver sender
  constexpr int kAlways = 9 + MsgpackPacketWriter::kContextFields;
  MsgpackPacketWriter writer(*this, out, kAlways + int{!packet.groups.is_absent()});
  writer.key(Key("id"));
  writer.text(packet.id);
  writer.key(Key("event"));
  writer.text(packet.event);
  writer.key(Key("data"));
  writer.payload(packet.data);
  if (!packet.groups.is_absent()) {
    writer.key(Key("groups"));
    writer.payload(packet.groups);
  }
  writer.key(Key("broadcast"));
  writer.boolean(packet.broadcast);
  writer.key(Key("meta"));
  writer.object(packet.meta);
  writer.key(Key("headers"));
  writer.object(packet.headers);
  writer.context(packet.level, packet.tracing, packet.parent_id, packet.request_id, packet.caller);
  writer.key(Key("needAck"));
  writer.null();
  return writer.finish(packet.ver, packet.sender);
}

Result<> MsgpackSerializer::encode(const Value& value, Buffer& out) const {
  const std::size_t size_before = out.size();
  MsgpackWriter writer(out);
  write_value(writer, value);
  if (writer.failure() == nullptr) return {};
  out.truncate(size_before);
  return not_encodable(name(), writer.failure());
}

}  // namespace weft
