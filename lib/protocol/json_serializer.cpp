#include "lib/protocol/json_serializer.h"

#include "lib/protocol/envelope.h"
#include "lib/protocol/json_cursor.h"
#include "lib/protocol/json_writer.h"
#include "lib/protocol/serializer_errors.h"

namespace weft {

namespace {

// The way through the members of a message's envelope: see envelope.h.
class JsonFields {
 public:
  JsonFields(const Serializer& serializer, BytesView message, const JsonIndex& index, std::string& scratch)
      : serializer_(serializer), message_bytes_(message.size()), scratch_(scratch) {
    cursor_.reset(message, index);
    if (!cursor_.take('{')) (void)fail("not an object");
  }

  [[nodiscard]] const char* failure() const { return failure_; }

  bool next(FieldId& field) {
    if (failure_ != nullptr) return false;
    if (cursor_.take('}')) return cursor_.at_end() ? false : fail("something follows the packet");
    if (!is_first_ && !cursor_.take(',')) return fail("a comma or } was expected");
    is_first_ = false;
    if (cursor_.peek() != '"') return fail("a key was expected");
    const std::string_view quoted = cursor_.take_scalar();
    if (quoted.size() < 2) return fail("a key is malformed");
    field = field_id(quoted.substr(1, quoted.size() - 2));
    if (field == FieldId::kOther) {  // Or a name with escapes.
      std::string_view key;
      if (!read_string(quoted, key)) return fail("a key is malformed");
      field = field_id(key);
    }
    return cursor_.take(':') || fail("a colon was expected");
  }

  Token::Kind shape() const {
    switch (cursor_.peek()) {
      case '{':
        return Token::Kind::kBeginObject;
      case '[':
        return Token::Kind::kBeginArray;
      case 'n':
        return Token::Kind::kNull;
      default:
        return Token::Kind::kString;
    }
  }

  const Token* scalar() {
    const char c = cursor_.peek();
    if (c == '{' || c == '[' || cursor_.at_end()) {
      skip();
      return nullptr;
    }
    const std::string_view text = cursor_.take_scalar();
    const bool good = c == '"' ? read_string(text, token_.text) : read_json_scalar(text, token_, scratch_);
    if (!good) {
      (void)fail("a field is malformed");
      return nullptr;
    }
    if (c == '"') token_.kind = Token::Kind::kString;
    return &token_;
  }

  void slice(Payload& out) {
    BytesView value;
    if (cursor_.take_value(value)) {
      out.set_slice(serializer_, value);
    } else {
      (void)fail("a field is malformed or nested too deeply");
    }
  }

  void skip() {
    BytesView value;
    if (!cursor_.take_value(value)) (void)fail("a field is malformed or nested too deeply");
  }

 private:
  bool fail(const char* why) {
    failure_ = why;
    return false;
  }
  bool read_string(std::string_view quoted, std::string_view& out) {
    if (quoted.size() < 2 || quoted.back() != '"') return false;
    out = quoted.substr(1, quoted.size() - 2);
    if (!has_json_escape(out)) return true;
    // Text without its escapes is never longer: with this room, no text moves when another is added.
    scratch_.reserve(message_bytes_);
    return read_json_string(quoted, out, scratch_);
  }

  const Serializer& serializer_;
  std::size_t message_bytes_;
  std::string& scratch_;
  JsonCursor cursor_;
  Token token_;
  const char* failure_ = nullptr;
  bool is_first_ = true;
};

// Writes the members of an envelope between its literal key fragments.
class JsonPacketWriter {
 public:
  JsonPacketWriter(const Serializer& serializer, Buffer& out)
      : serializer_(serializer), out_(out), size_before_(out.size()) {}

  void raw(BytesView fragment) { out_.append(fragment); }
  void text(std::string_view value) {
    with_writer([value](JsonWriter& writer) { writer.string(value); });
  }
  // Text that is empty when there is none.
  void text_or_null(std::string_view value) {
    if (value.empty()) {
      raw("null");
    } else {
      text(value);
    }
  }
  void integer(std::int64_t value) {
    with_writer([value](JsonWriter& writer) { writer.integer(value); });
  }
  void number(double value) {
    with_writer([value](JsonWriter& writer) { writer.number(value); });
  }
  void boolean(bool value) { raw(value ? "true" : "false"); }
  void tracing(std::optional<bool> value) {
    if (value) {
      boolean(*value);
    } else {
      raw("null");
    }
  }

  void payload(const Payload& value) {
    if (const BytesView bytes = value.raw(serializer_); !bytes.empty()) return raw(bytes);
    with_writer([this, &value](JsonWriter& writer) {
      if (auto failure = value.try_write(writer)) error_ = std::move(failure);
    });
  }
  // meta and headers: objects that are never left out.
  void object(const Payload& value) {
    if (value.is_empty_object()) {
      raw("{}");
    } else {
      payload(value);
    }
  }

  void context(int level, std::optional<bool> tracing_state, std::string_view parent_id,
               std::string_view request_id, std::string_view caller) {
    raw(",\"level\":");
    integer(level);
    raw(",\"tracing\":");
    tracing(tracing_state);
    raw(",\"parentID\":");
    text_or_null(parent_id);
    raw(",\"requestID\":");
    text_or_null(request_id);
    raw(",\"caller\":");
    text_or_null(caller);
  }

  Result<> finish(std::string_view ver, std::string_view sender) {
    raw(",\"ver\":");
    text(ver);
    raw(",\"sender\":");
    text(sender);
    raw("}");
    return finish();
  }
  Result<> finish() {
    if (!error_) return {};
    out_.truncate(size_before_);
    return *std::move(error_);
  }

 private:
  template <typename Write>
  void with_writer(Write write) {
    JsonWriter writer(out_);
    write(writer);
    if (writer.failure() != nullptr && !error_) error_ = not_encodable("JSON", writer.failure());
  }

  const Serializer& serializer_;
  Buffer& out_;
  std::size_t size_before_;
  std::optional<Error> error_;
};

}  // namespace

template <typename Packet>
Result<> JsonSerializer::decode_packet(BytesView message, Packet& out) const {
  constexpr std::size_t kScratchKeptMax = 1 << 16;
  scratch_.clear();
  if (scratch_.capacity() > kScratchKeptMax) scratch_.shrink_to_fit();
  if (const char* why = index_.scan(message)) return malformed_packet(name(), why);
  JsonFields fields(*this, message, index_, scratch_);
  const char* const missing = read_packet(fields, out);
  index_.trim();
  if (fields.failure() != nullptr) return malformed_packet(name(), fields.failure());
  if (missing != nullptr) return malformed_packet(name(), missing);
  return {};
}

Result<> JsonSerializer::decode(BytesView message, RequestPacket& out) const {
  return decode_packet(message, out);
}

Result<> JsonSerializer::decode(BytesView message, ResponsePacket& out) const {
  return decode_packet(message, out);
}

Result<> JsonSerializer::decode(BytesView message, EventPacket& out) const {
  return decode_packet(message, out);
}

Result<> JsonSerializer::decode(BytesView message, Value& out) const {
  const ReaderPool<JsonReader>::Lent reader(readers_);
  reader->start(message);
  if (!read_value(*reader, out)) return malformed_packet(name(), reader->error());
  return {};
}

void JsonSerializer::read(BytesView bytes, FunctionRef<void(ValueReader&)> use) const {
  const ReaderPool<JsonReader>::Lent reader(readers_);
  reader->start(bytes);
  use(*reader);
}

Result<> JsonSerializer::encode(const RequestPacket& packet, Buffer& out) const {
  JsonPacketWriter writer(*this, out);
  writer.raw("{\"id\":");
  writer.text(packet.id);
  writer.raw(",\"action\":");
  writer.text(packet.action);
  if (!packet.params.is_absent()) {
    writer.raw(",\"params\":");
    writer.payload(packet.params);
  }
  writer.raw(",\"meta\":");
  writer.object(packet.meta);
  writer.raw(",\"headers\":");
  writer.object(packet.headers);
  if (packet.timeout_ms) {
    writer.raw(",\"timeout\":");
    writer.number(*packet.timeout_ms);
  }
  writer.context(packet.level, packet.tracing, packet.parent_id, packet.request_id, packet.caller);
  if (packet.has_stream) {
    writer.raw(",\"stream\":");
    writer.boolean(packet.stream);
  }
  if (packet.seq) {
    writer.raw(",\"seq\":");
    writer.integer(*packet.seq);
  }
  return writer.finish(packet.ver, packet.sender);
}

Result<> JsonSerializer::encode(const ResponsePacket& packet, Buffer& out) const {
  JsonPacketWriter writer(*this, out);
  writer.raw("{\"id\":");
  writer.text(packet.id);
  writer.raw(",\"meta\":");
  writer.object(packet.meta);
  writer.raw(",\"headers\":");
  if (packet.headers_null) {
    writer.raw("null");
  } else {
    writer.object(packet.headers);
  }
  writer.raw(",\"success\":");
  writer.boolean(packet.success);
  if (!packet.data.is_absent()) {
    writer.raw(",\"data\":");
    writer.payload(packet.data);
  } else if (!packet.success) {
    writer.raw(",\"data\":null");
  }
  if (!packet.error.is_absent()) {
    writer.raw(",\"error\":");
    writer.payload(packet.error);
  }
  if (packet.stream) {
    writer.raw(",\"stream\":");
    writer.boolean(*packet.stream);
  }
  if (packet.seq) {
    writer.raw(",\"seq\":");
    writer.integer(*packet.seq);
  }
  return writer.finish(packet.ver, packet.sender);
}

Result<> JsonSerializer::encode(const EventPacket& packet, Buffer& out) const {
  JsonPacketWriter writer(*this, out);
  writer.raw("{\"id\":");
  writer.text(packet.id);
  writer.raw(",\"event\":");
  writer.text(packet.event);
  writer.raw(",\"data\":");
  writer.payload(packet.data);
  if (!packet.groups.is_absent()) {
    writer.raw(",\"groups\":");
    writer.payload(packet.groups);
  }
  writer.raw(",\"broadcast\":");
  writer.boolean(packet.broadcast);
  writer.raw(",\"meta\":");
  writer.object(packet.meta);
  writer.raw(",\"headers\":");
  writer.object(packet.headers);
  writer.context(packet.level, packet.tracing, packet.parent_id, packet.request_id, packet.caller);
  writer.raw(",\"needAck\":null");
  return writer.finish(packet.ver, packet.sender);
}

Result<> JsonSerializer::encode(const Value& value, Buffer& out) const {
  const std::size_t size_before = out.size();
  JsonWriter writer(out);
  write_value(writer, value);
  if (writer.failure() == nullptr) return {};
  out.truncate(size_before);
  return not_encodable(name(), writer.failure());
}

}  // namespace weft
