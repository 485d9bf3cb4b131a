#include "lib/protocol/json_reader.h"
#include "lib/protocol/json_writer.h"
#include "lib/protocol/serializer.h"

namespace weft {

namespace {

std::string written(const Value& value, int indent) {
  Buffer out;
  JsonWriter writer(out, JsonWriter::Mode::kLenient, indent);
  write_value(writer, value);
  return std::string(out.view());
}

}  // namespace

std::string to_json(const Value& value) {
  return written(value, 0);
}

std::string to_pretty_json(const Value& value) {
  return written(value, 2);
}

Result<Value> parse_json(std::string_view text) {
  Buffer padded;
  padded.append(text);
  JsonReader reader;
  reader.start(padded.view());
  Value value;
  if (!read_value(reader, value)) {
    return Error(ErrorClass::kBase, "Malformed JSON: " + std::string(reader.error()) + ".",
                 "MALFORMED_VALUE");
  }
  return value;
}

}  // namespace weft
