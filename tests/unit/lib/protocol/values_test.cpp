// The recorded table of values: what JavaScript's serializers write for each, and what they read.

#include <bit>
#include <cmath>

#include "tests/unit/lib/protocol/codec_support.h"

namespace weft::test {

namespace {

// Whether `value` holds something weft has no value for: undefined in an array, functions, BigInt …
bool has_marker(const Value& value) {
  for (const Value& item : value.items()) {
    if (has_marker(item)) return true;
  }
  for (const Member& member : value.members()) {
    if (member.key.starts_with('$') || has_marker(member.value)) return true;
  }
  return false;
}

bool same(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number() && std::isnan(a.f64())) return std::isnan(b.f64());
  return a == b;
}

void check_row(const Value& row, std::string_view name) {
  const Value& wire = row["wire"][name];
  if (wire.contains("encodeError")) return;  // JavaScript has no bytes for it.
  const auto serializer = serializer_of(name);
  const Value value = without_markers(row["value"]);
  const Value expected = wire.contains("decodesTo") ? without_markers(wire["decodesTo"]) : value;
  if (wire.contains("text") || wire.contains("hex")) {
    const Buffer bytes = wire.contains("text") ? to_buffer(wire["text"].str()) : from_hex(wire["hex"].str());
    const Value read = decoded(*serializer, bytes.view());
    CHECK_MESSAGE(same(read["v"], expected), to_json(read["v"]));
  }
  if (has_marker(value)) return;
  const Buffer bytes = encoded(*serializer, Value{{"v", value}});
  const Value again = decoded(*serializer, bytes.view())["v"];
  if (name == "MsgPack") {
    CHECK_MESSAGE(same(again, value), to_json(again));
    return;
  }
  // What JavaScript loses in JSON and weft keeps: half a surrogate pair, the sign of zero, bytes, maps.
  const bool is_kept = row["name"].str() == "str lone surrogate" || row["name"].str() == "float -0" ||
                       row["value"].contains("$map");
  if (value.is_binary()) {
    CHECK(again["type"].str() == "Buffer");
    CHECK(again["data"].size() == value.binary().size());
  } else {
    CHECK_MESSAGE(same(again, is_kept ? value : expected), to_json(again));
  }
  if (wire.contains("text") && !is_kept && !row["value"].contains("$uint8array")) {
    CHECK(bytes.view() == wire["text"].str());
  }
}

}  // namespace

TEST_SUITE("protocol values") {
  TEST_CASE("values are read and written as JavaScript's serializers do") {
    const Value table = load_json_vector("values.json");
    REQUIRE(table["values"].size() == 90);
    for (const Value& row : table["values"].items()) {
      for (const std::string_view name : kSerializers) {
        CAPTURE(name);
        CAPTURE(row["name"].str());
        check_row(row, name);
      }
    }
  }

  TEST_CASE("odd MessagePack is read as JavaScript reads it, or better") {
    const auto serializer = serializer_of("MsgPack");
    const Value table = load_json_vector("decode.json");
    REQUIRE(table["MsgPack"].size() == 23);
    for (const Value& row : table["MsgPack"].items()) {
      const std::string_view name = row["name"].str();
      CAPTURE(name);
      const Buffer bytes = from_hex(row["hex"].str());
      Value value;
      const auto result = serializer->decode(bytes.view(), value);
      if (name == "msgpack5 uint64 2^64-1") {
        CHECK(value["v"].u64() == UINT64_MAX);  // Every bit is kept.
      } else if (name == "msgpack5 __proto__ key") {
        REQUIRE(result.ok());  // A key like any other.
        CHECK(value == Value{{"__proto__", 1}});
      } else if (name == "msgpack5 deep nesting 101 arrays") {
        REQUIRE(result.ok());  // The limit is 200 here.
      } else if (row["decodesTo"].contains("$decodeError")) {
        CHECK_FALSE(result.ok());
      } else {
        REQUIRE(result.ok());
        CHECK(value == without_markers(row["decodesTo"]));
      }
    }
  }
}

}  // namespace weft::test
