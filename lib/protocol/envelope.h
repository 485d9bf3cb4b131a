#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "lib/protocol/packet.h"
#include "lib/value/token.h"

namespace weft {

// The fields of the hot packets and the rules for reading them, shared by the serializers.
//
// Fields is the serializer's way through one map:
//   bool next(FieldId& field)      the next key; false at the end and when the message is malformed
//   const Token* scalar()          the field's value, consumed; null when it is no scalar, or malformed
//   Token::Kind shape()            what the field's value is, without consuming it: kBeginObject,
//   kBeginArray,
//                                  kNull; kString for any other scalar
//   void slice(Payload& out)       the field's value, undecoded
//   void skip()
// Text of scalars is stable until the next message. A field of an unexpected type counts as absent; so does
// null, unless null means something. The last of several fields with one name wins.

enum class FieldId : std::uint8_t {
  kOther,
  kId,
  kVer,
  kSeq,
  kMeta,
  kData,
  kLevel,
  kEvent,
  kError,
  kAction,
  kParams,
  kSender,
  kCaller,
  kStream,
  kGroups,
  kTimeout,
  kTracing,
  kHeaders,
  kSuccess,
  kParentId,
  kRequestId,
  kBroadcast,
};

[[nodiscard]] inline FieldId field_id(std::string_view key) {
  const auto is = [key](std::string_view name, FieldId id) { return key == name ? id : FieldId::kOther; };
  switch (key.size()) {
    case 2:
      return is("id", FieldId::kId);
    case 3:
      return key[0] == 'v' ? is("ver", FieldId::kVer) : is("seq", FieldId::kSeq);
    case 4:
      return key[0] == 'm' ? is("meta", FieldId::kMeta) : is("data", FieldId::kData);
    case 5:
      if (key[0] == 'l') return is("level", FieldId::kLevel);
      return key[1] == 'v' ? is("event", FieldId::kEvent) : is("error", FieldId::kError);
    case 6:
      switch (key[1]) {
        case 'c':
          return is("action", FieldId::kAction);
        case 'a':
          return key[0] == 'p' ? is("params", FieldId::kParams) : is("caller", FieldId::kCaller);
        case 'e':
          return is("sender", FieldId::kSender);
        case 't':
          return is("stream", FieldId::kStream);
        default:
          return is("groups", FieldId::kGroups);
      }
    case 7:
      switch (key[1]) {
        case 'i':
          return is("timeout", FieldId::kTimeout);
        case 'r':
          return is("tracing", FieldId::kTracing);
        case 'e':
          return is("headers", FieldId::kHeaders);
        default:
          return is("success", FieldId::kSuccess);
      }
    case 8:
      return is("parentID", FieldId::kParentId);
    case 9:
      return key[0] == 'r' ? is("requestID", FieldId::kRequestId) : is("broadcast", FieldId::kBroadcast);
    default:
      return FieldId::kOther;
  }
}

template <typename Fields>
bool read_text(Fields& in, std::string_view& out) {
  const Token* token = in.scalar();
  const bool is_text = token != nullptr && token->kind == Token::Kind::kString;
  out = is_text ? token->text : std::string_view();
  return is_text;
}

template <typename Fields>
std::optional<bool> read_bool(Fields& in) {
  const Token* token = in.scalar();
  if (token == nullptr || token->kind != Token::Kind::kBool) return std::nullopt;
  return token->boolean;
}

template <typename Fields>
std::optional<double> read_number(Fields& in) {
  const Token* token = in.scalar();
  if (token == nullptr) return std::nullopt;
  switch (token->kind) {
    case Token::Kind::kInt:
      return static_cast<double>(token->integer);
    case Token::Kind::kUint:
      return static_cast<double>(token->unsigned_integer);
    case Token::Kind::kDouble:
      if (std::isnan(token->number)) return std::nullopt;
      return token->number;
    default:
      return std::nullopt;
  }
}

template <typename Fields>
std::optional<std::int64_t> read_integer(Fields& in) {
  const Token* token = in.scalar();
  if (token == nullptr) return std::nullopt;
  if (token->kind == Token::Kind::kInt) return token->integer;
  if (token->kind == Token::Kind::kDouble && token->number >= -0x1p63 && token->number < 0x1p63 &&
      std::trunc(token->number) == token->number) {
    return static_cast<std::int64_t>(token->number);
  }
  return std::nullopt;
}

template <typename Fields>
int read_level(Fields& in) {
  const auto level = read_integer(in);
  if (!level || *level < 0 || *level > std::numeric_limits<int>::max()) return 1;
  return static_cast<int>(*level);
}

// A field that is of use in one shape only.
template <typename Fields>
void read_shaped(Fields& in, Token::Kind shape, Payload& out) {
  if (in.shape() == shape) return in.slice(out);
  out.clear();
  in.skip();
}

// What REQ and EVENT have in common, as if nothing had been there. Field by field: assigning a new packet
// costs as much as reading it.
template <typename Packet>
void clear_context(Packet& out) {
  out.ver = {};
  out.sender = {};
  out.id = {};
  out.meta.clear();
  out.headers.clear();
  out.level = 1;
  out.tracing.reset();
  out.parent_id = {};
  out.request_id = {};
  out.caller = {};
}

// The readers below return what is wrong beyond the message's form, or null. They stop early when the message
// is malformed: `in` knows why.

template <typename Fields>
const char* read_packet(Fields& in, RequestPacket& out) {
  clear_context(out);
  out.action = {};
  out.params.clear();
  out.timeout_ms.reset();
  out.has_stream = false;
  out.stream = false;
  out.seq.reset();
  bool has_id = false;
  bool has_action = false;
  FieldId field = FieldId::kOther;
  while (in.next(field)) {
    switch (field) {
      case FieldId::kId:
        has_id = read_text(in, out.id);
        break;
      case FieldId::kAction:
        has_action = read_text(in, out.action);
        break;
      case FieldId::kParams:
        in.slice(out.params);
        break;
      case FieldId::kMeta:
        read_shaped(in, Token::Kind::kBeginObject, out.meta);
        break;
      case FieldId::kHeaders:
        read_shaped(in, Token::Kind::kBeginObject, out.headers);
        break;
      case FieldId::kTimeout:
        out.timeout_ms = read_number(in);
        break;
      case FieldId::kLevel:
        out.level = read_level(in);
        break;
      case FieldId::kTracing:
        out.tracing = read_bool(in);
        break;
      case FieldId::kParentId:
        (void)read_text(in, out.parent_id);
        break;
      case FieldId::kRequestId:
        (void)read_text(in, out.request_id);
        break;
      case FieldId::kCaller:
        (void)read_text(in, out.caller);
        break;
      case FieldId::kStream: {
        const bool is_null = in.shape() == Token::Kind::kNull;  // A key that is there and says no.
        const auto stream = read_bool(in);
        out.has_stream = stream.has_value() || is_null;
        out.stream = stream.value_or(false);
        break;
      }
      case FieldId::kSeq:
        out.seq = read_integer(in);
        break;
      case FieldId::kVer:
        (void)read_text(in, out.ver);
        break;
      case FieldId::kSender:
        (void)read_text(in, out.sender);
        break;
      default:
        in.skip();
        break;
    }
  }
  if (!has_id) return "no id";
  return has_action ? nullptr : "no action";
}

template <typename Fields>
const char* read_packet(Fields& in, ResponsePacket& out) {
  out.ver = {};
  out.sender = {};
  out.id = {};
  out.success = false;
  out.data.clear();
  out.error.clear();
  out.meta.clear();
  out.headers.clear();
  out.headers_null = false;
  out.stream.reset();
  out.seq.reset();
  bool has_id = false;
  FieldId field = FieldId::kOther;
  while (in.next(field)) {
    switch (field) {
      case FieldId::kId:
        has_id = read_text(in, out.id);
        break;
      case FieldId::kSuccess:
        out.success = read_bool(in).value_or(false);
        break;
      case FieldId::kData:
        in.slice(out.data);
        break;
      case FieldId::kError:
        read_shaped(in, Token::Kind::kBeginObject, out.error);
        break;
      case FieldId::kMeta:
        read_shaped(in, Token::Kind::kBeginObject, out.meta);
        break;
      case FieldId::kHeaders:
        out.headers_null = in.shape() == Token::Kind::kNull;
        read_shaped(in, Token::Kind::kBeginObject, out.headers);
        break;
      case FieldId::kStream:
        out.stream = read_bool(in);
        break;
      case FieldId::kSeq:
        out.seq = read_integer(in);
        break;
      case FieldId::kVer:
        (void)read_text(in, out.ver);
        break;
      case FieldId::kSender:
        (void)read_text(in, out.sender);
        break;
      default:
        in.skip();
        break;
    }
  }
  return has_id ? nullptr : "no id";
}

template <typename Fields>
const char* read_packet(Fields& in, EventPacket& out) {
  clear_context(out);
  out.event = {};
  out.data.clear();
  out.groups.clear();
  out.broadcast = false;
  bool has_event = false;
  FieldId field = FieldId::kOther;
  while (in.next(field)) {
    switch (field) {
      case FieldId::kId:
        (void)read_text(in, out.id);
        break;
      case FieldId::kEvent:
        has_event = read_text(in, out.event);
        break;
      case FieldId::kData:
        in.slice(out.data);
        break;
      case FieldId::kGroups:
        read_shaped(in, Token::Kind::kBeginArray, out.groups);
        break;
      case FieldId::kBroadcast:
        out.broadcast = read_bool(in).value_or(false);
        break;
      case FieldId::kMeta:
        read_shaped(in, Token::Kind::kBeginObject, out.meta);
        break;
      case FieldId::kHeaders:
        read_shaped(in, Token::Kind::kBeginObject, out.headers);
        break;
      case FieldId::kLevel:
        out.level = read_level(in);
        break;
      case FieldId::kTracing:
        out.tracing = read_bool(in);
        break;
      case FieldId::kParentId:
        (void)read_text(in, out.parent_id);
        break;
      case FieldId::kRequestId:
        (void)read_text(in, out.request_id);
        break;
      case FieldId::kCaller:
        (void)read_text(in, out.caller);
        break;
      case FieldId::kVer:
        (void)read_text(in, out.ver);
        break;
      case FieldId::kSender:
        (void)read_text(in, out.sender);
        break;
      default:
        in.skip();
        break;
    }
  }
  return has_event ? nullptr : "no event";
}

}  // namespace weft
