#pragma once

#include <memory>
#include <string_view>

#include "lib/base/buffer.h"
#include "lib/base/function_ref.h"
#include "lib/error/result.h"
#include "lib/protocol/packet.h"
#include "lib/value/token.h"

namespace weft {

// Turns packets into bytes and back. One per node; the same one for the whole mesh.
//
// Decoding is lazy: the fields of the envelope become views, `params`, `meta`, `data` … stay slices. A
// decoder is handed whole messages with kReadPadding readable bytes behind them, and never trusts them:
// malformed input is an error of that message. Thread: one at a time; a decode invalidates what the one
// before handed out.
class Serializer {
 public:
  virtual ~Serializer() = default;
  // "JSON", "MsgPack".
  [[nodiscard]] virtual std::string_view name() const = 0;

  [[nodiscard]] virtual Result<> decode(BytesView message, RequestPacket& out) const = 0;
  [[nodiscard]] virtual Result<> decode(BytesView message, ResponsePacket& out) const = 0;
  [[nodiscard]] virtual Result<> decode(BytesView message, EventPacket& out) const = 0;
  // Everything else: the whole message as a tree.
  [[nodiscard]] virtual Result<> decode(BytesView message, Value& out) const = 0;

  // Append the encoded packet to `out`. An error (text that is no UTF-8, say) leaves `out` as it was.
  [[nodiscard]] virtual Result<> encode(const RequestPacket& packet, Buffer& out) const = 0;
  [[nodiscard]] virtual Result<> encode(const ResponsePacket& packet, Buffer& out) const = 0;
  [[nodiscard]] virtual Result<> encode(const EventPacket& packet, Buffer& out) const = 0;
  [[nodiscard]] virtual Result<> encode(const Value& value, Buffer& out) const = 0;

  // Lends a reader over the bytes of one value. Nested use is allowed. Thread: any, also while another
  // decodes: a blocking handler reads its params from the worker pool.
  virtual void read(BytesView bytes, FunctionRef<void(ValueReader&)> use) const = 0;
};

// "JSON" or "MsgPack" (any case). An unknown name is a BrokerOptionsError that lists what there is.
[[nodiscard]] Result<std::unique_ptr<Serializer>> make_serializer(std::string_view name);

// JSON text of a tree, compact. Text that is no UTF-8 is written with replacement characters.
[[nodiscard]] std::string to_json(const Value& value);
// Indented by two spaces, for people.
[[nodiscard]] std::string to_pretty_json(const Value& value);
[[nodiscard]] Result<Value> parse_json(std::string_view text);

}  // namespace weft
