// Writes packets and values with both serializers into a folder, and beside them what each means, for
// codec_roundtrip.js to read with the real ones: codec_roundtrip DIR

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "lib/base/assert.h"
#include "lib/protocol/serializer.h"
#include "lib/value/iso_time.h"

namespace {

using namespace weft;

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    hex.push_back("0123456789abcdef"[static_cast<unsigned char>(c) >> 4]);
    hex.push_back("0123456789abcdef"[static_cast<unsigned char>(c) & 15]);
  }
  return hex;
}

Value byte_list(std::string_view bytes) {
  Value list = Value::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return list;
}

// What JavaScript should see, in JSON; what JSON has no word for stands as a marker.
Value meaning(const Value& value, bool is_json) {
  switch (value.kind()) {
    case Value::Kind::kDouble: {
      const double number = value.f64();
      if (!std::isfinite(number) && is_json) return nullptr;
      if (std::isnan(number)) return Value{{"$number", "NaN"}};
      if (std::isinf(number)) return Value{{"$number", number > 0 ? "Infinity" : "-Infinity"}};
      if (number == 0 && std::signbit(number)) return Value{{"$number", "-0"}};
      return value;
    }
    case Value::Kind::kBinary:
      if (is_json) return Value{{"type", "Buffer"}, {"data", byte_list(value.binary())}};
      return Value{{"$bytes", to_hex(value.binary())}};
    case Value::Kind::kTimestamp:
      if (is_json) return to_iso_time(value.timestamp());
      return Value{{"$date", value.timestamp().ms}};
    case Value::Kind::kArray: {
      Value list = Value::array();
      for (const Value& item : value.items()) list.push_back(meaning(item, is_json));
      return list;
    }
    case Value::Kind::kObject: {
      Value object = Value::object();
      for (const Member& member : value.members())
        object.append_member(member.key, meaning(member.value, is_json));
      return object;
    }
    default:
      return value;
  }
}

// Collects the cases of one serializer.
class Folder {
 public:
  Folder(const char* path, const Serializer& serializer) : path_(path), serializer_(serializer) {}

  [[nodiscard]] bool is_json() const { return serializer_.name() == "JSON"; }

  template <typename Encoded>
  void add(std::string_view name, const Encoded& encoded, const Value& expected) {
    Buffer bytes;
    WEFT_ASSERT(serializer_.encode(encoded, bytes).ok());
    const std::string file = std::string(serializer_.name()) + "-" + std::to_string(cases_.size()) + ".bin";
    write(file, bytes.view());
    cases_.push_back(Value{{"name", name},
                           {"serializer", serializer_.name()},
                           {"file", file},
                           {"expected", meaning(expected, is_json())}});
  }
  void add(std::string_view name, const Value& value) {
    const Value message{{"v", value}};
    add(name, message, message);
  }
  void finish() { write(std::string(serializer_.name()) + ".json", to_json(cases_)); }

 private:
  void write(const std::string& file, std::string_view bytes) {
    std::ofstream out(path_ + "/" + file, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    WEFT_ASSERT(out.good());
  }

  std::string path_;
  const Serializer& serializer_;
  Value cases_ = Value::array();
};

void add_values(Folder& folder) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::pair<std::string_view, Value> rows[] = {
      {"null", nullptr},
      {"true", true},
      {"false", false},
      {"0", 0},
      {"127", 127},
      {"128", 128},
      {"255", 255},
      {"256", 256},
      {"65535", 65535},
      {"65536", 65536},
      {"2^31", 2147483648},
      {"2^32-1", 4294967295},
      {"2^32", 4294967296},
      {"2^53-1", 9007199254740991},
      {"2^53", 9007199254740992},
      {"2^63-1, rounded", INT64_MAX},
      {"2^64-1, rounded", UINT64_MAX},
      {"-1", -1},
      {"-32", -32},
      {"-33", -33},
      {"-128", -128},
      {"-129", -129},
      {"-32768", -32768},
      {"-32769", -32769},
      {"-2^31", INT32_MIN},
      {"-2^31-1", std::int64_t{INT32_MIN} - 1},
      {"-2^53+1", -9007199254740991},
      {"-2^63", INT64_MIN},
      {"0.5", 0.5},
      {"0.1", 0.1},
      {"5.0", 5.0},
      {"100000.0", 100000.0},
      {"1e300", 1e300},
      {"5e-324", 5e-324},
      {"1e-7", 1e-7},
      {"0.1+0.2", 0.1 + 0.2},
      {"the largest double", std::numeric_limits<double>::max()},
      {"-0.0", -0.0},
      {"NaN", std::nan("")},
      {"Infinity", infinity},
      {"-Infinity", -infinity},
      {"empty text", ""},
      {"text", "hello"},
      {"text beyond ASCII", "žluťoučký kůň 🐱 \u2028"},
      {"control characters", std::string_view("\0\x01\b\t\n\f\r\x1f\"\\/\x7f", 12)},
      {"text of 31", std::string(31, 'x')},
      {"text of 32", std::string(32, 'x')},
      {"text of 255", std::string(255, 'x')},
      {"text of 256", std::string(256, 'x')},
      {"text of 65535", std::string(65535, 'x')},
      {"text of 65536", std::string(65536, 'x')},
      {"binary", Binary{std::string("\0\x01\xfe\xff", 4)}},
      {"empty binary", Binary{}},
      {"binary of 256", Binary{std::string(256, '\x07')}},
      {"binary of 65536", Binary{std::string(65536, '\x07')}},
      {"time", Timestamp{1700000000000}},
      {"time with milliseconds", Timestamp{1700000000123}},
      {"time before 1970", Timestamp{-1500}},
      {"time after 2106", Timestamp{4294967296001}},
      {"time after 2514", Timestamp{17179869184000}},
      {"empty array", Value::array()},
      {"empty object", Value::object()},
      {"array of 16", std::vector<int>(16, 1)},
      {"array of 65536", std::vector<int>(65536, 1)},
      {"nested", Value{{"a", arr(Value{{"b", {{"c", arr(nullptr, true)}}}})}}},
      {"odd keys", Value{{"", 1}, {"a b", 2}, {"\"", 3}, {"constructor", 4}, {"ž", 5}}},
  };
  for (const auto& [name, value] : rows) folder.add(name, value);
  Value wide = Value::object();
  for (int i = 0; i < 70000; ++i) wide.append_member("k" + std::to_string(i), i);
  folder.add("object of 70000", wide);
  if (folder.is_json()) {
    // MessagePack has no form of these that JavaScript's codec reads: it gives half a pair up and refuses the
    // key.
    folder.add("half a surrogate pair", "a\xed\xa0\x80z");
    folder.add("a key named __proto__", Value{{"__proto__", {{"x", 1}}}});
  }
}

void add_packets(Folder& folder) {
  RequestPacket request;
  request.sender = "node-w";
  request.id = "1";
  request.action = "math.add";
  const Value bare{{"id", "1"},
                   {"action", "math.add"},
                   {"meta", Value::object()},
                   {"headers", Value::object()},
                   {"level", 1},
                   {"tracing", nullptr},
                   {"parentID", nullptr},
                   {"requestID", nullptr},
                   {"caller", nullptr},
                   {"stream", false},
                   {"ver", "5"},
                   {"sender", "node-w"}};
  folder.add("bare REQ", request, bare);
  request.params = Value{{"a", 1}, {"text", "ž"}};
  request.meta = Value{{"user", {{"id", 5}}}};
  request.headers = Value{{"h", "x"}};
  request.timeout_ms = 4999.75;
  request.level = 3;
  request.tracing = true;
  request.parent_id = "p";
  request.request_id = "r";
  request.caller = "v2.users";
  request.stream = true;
  request.seq = 0;
  Value full = bare;
  full.merge(Value{{"params", {{"a", 1}, {"text", "ž"}}},
                   {"meta", {{"user", {{"id", 5}}}}},
                   {"headers", {{"h", "x"}}},
                   {"timeout", 4999.75},
                   {"level", 3},
                   {"tracing", true},
                   {"parentID", "p"},
                   {"requestID", "r"},
                   {"caller", "v2.users"},
                   {"stream", true},
                   {"seq", 0}});
  folder.add("full REQ", request, full);

  ResponsePacket response;
  response.sender = "node-w";
  response.id = "1";
  const Value answer{{"id", "1"},  {"meta", Value::object()}, {"headers", Value::object()}, {"success", true},
                     {"ver", "5"}, {"sender", "node-w"}};
  const auto with = [](const Value& map, const Value& more) {
    Value merged = map;
    merged.merge(more);
    return merged;
  };
  folder.add("RES without data", response, answer);
  response.data = Value(nullptr);
  folder.add("RES with null", response, with(answer, Value{{"data", nullptr}}));
  response.data = Value(Binary{"bytes"});
  folder.add("RES with binary", response, with(answer, Value{{"data", Binary{"bytes"}}}));
  response.stream = false;
  response.seq = 7;
  folder.add("RES of a stream", response,
             with(answer, Value{{"data", Binary{"bytes"}}, {"stream", false}, {"seq", 7}}));
  ResponsePacket failure;
  failure.sender = "node-w";
  failure.id = "2";
  failure.success = false;
  failure.headers_null = true;
  const Value error{
      {"name", "ServiceNotFoundError"}, {"message", "m"}, {"code", 404}, {"data", {{"action", "x"}}}};
  failure.error = error;
  folder.add(
      "RES with an error", failure,
      with(
          answer,
          Value{{"id", "2"}, {"success", false}, {"headers", nullptr}, {"data", nullptr}, {"error", error}}));

  EventPacket event;
  event.sender = "node-w";
  event.id = "3";
  event.event = "user.created";
  const Value emitted{{"id", "3"},
                      {"event", "user.created"},
                      {"data", nullptr},
                      {"broadcast", false},
                      {"meta", Value::object()},
                      {"headers", Value::object()},
                      {"level", 1},
                      {"tracing", nullptr},
                      {"parentID", nullptr},
                      {"requestID", nullptr},
                      {"caller", nullptr},
                      {"needAck", nullptr},
                      {"ver", "5"},
                      {"sender", "node-w"}};
  folder.add("EVENT without payload", event, emitted);
  event.data = Value{{"id", 1}};
  event.groups = arr("mail", "mail");
  event.broadcast = true;
  folder.add(
      "EVENT with groups", event,
      with(emitted, Value{{"data", {{"id", 1}}}, {"groups", arr("mail", "mail")}, {"broadcast", true}}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: codec_roundtrip DIR\n");
    return EXIT_FAILURE;
  }
  for (const char* name : {"JSON", "MsgPack"}) {
    const auto serializer = std::move(weft::make_serializer(name)).value();
    Folder folder(argv[1], *serializer);
    add_values(folder);
    add_packets(folder);
    folder.finish();
  }
  return EXIT_SUCCESS;
}
