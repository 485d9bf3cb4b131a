#include "lib/protocol/serializer.h"

#include <algorithm>

#include "lib/protocol/json_serializer.h"
#include "lib/protocol/msgpack_serializer.h"

namespace weft {

Result<std::unique_ptr<Serializer>> make_serializer(std::string_view name) {
  const auto is = [name](std::string_view known) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(name, known, {}, lower, lower);
  };
  if (is("JSON")) return std::unique_ptr<Serializer>(std::make_unique<JsonSerializer>());
  if (is("MsgPack")) return std::unique_ptr<Serializer>(std::make_unique<MsgpackSerializer>());
  return Error::broker_options("Unknown serializer '" + std::string(name) + "'. There are: JSON, MsgPack.",
                               Value{{"serializer", name}, {"allowed", arr("JSON", "MsgPack")}});
}

}  // namespace weft
