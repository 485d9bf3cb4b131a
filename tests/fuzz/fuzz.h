#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "lib/base/assert.h"
#include "lib/base/buffer.h"
#include "lib/protocol/serializer.h"

// Hostile bytes for everything in weft that reads what others wrote. One program holds all targets; each is a
// row of a table and a corpus of its own.

namespace weft::fuzz {

struct Target {
  std::string_view name;  // Also the folder of its inputs.
  void (*run)(BytesView input);
};

// The tables, one for each source. A target never fails on what the input is; it aborts when weft breaks a
// promise about it.
[[nodiscard]] std::span<const Target> codec_targets();
[[nodiscard]] std::span<const Target> differential_targets();
[[nodiscard]] std::span<const Target> packet_targets();
[[nodiscard]] std::span<const Target> setting_targets();
[[nodiscard]] std::span<const Target> wire_targets();

[[nodiscard]] inline const Target* find_target(std::string_view name) {
  for (const auto& table :
       {codec_targets(), differential_targets(), packet_targets(), setting_targets(), wire_targets()}) {
    for (const Target& target : table) {
      if (target.name == name) return &target;
    }
  }
  return nullptr;
}

// Bytes in a block of the very size with their padding, so that the sanitizer sees a step beyond it.
class Padded {
 public:
  explicit Padded(BytesView bytes) : size_(bytes.size()), block_(new char[bytes.size() + kReadPadding]) {
    if (!bytes.empty()) std::memcpy(block_.get(), bytes.data(), bytes.size());
    // Not zeros: the padding's content must not matter.
    std::memset(block_.get() + size_, bytes.empty() ? '1' : bytes.front(), kReadPadding);
  }
  [[nodiscard]] BytesView view() const { return {block_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<char[]> block_;
};

[[nodiscard]] inline const Serializer& json() {
  static const auto serializer = std::move(make_serializer("JSON")).value();
  return *serializer;
}
[[nodiscard]] inline const Serializer& msgpack() {
  static const auto serializer = std::move(make_serializer("MsgPack")).value();
  return *serializer;
}

}  // namespace weft::fuzz
