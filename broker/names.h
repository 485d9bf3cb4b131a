#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

// A list of names: one text, several in braces, or a vector. No initializer_list on purpose: g++ 12 refuses
// one in an expression with co_await.
class Names {
 public:
  Names() = default;
  Names(std::vector<std::string> names) : list(std::move(names)) {}  // NOLINT(google-explicit-constructor)
  template <typename... Texts>
  requires(sizeof...(Texts) > 0 && (std::convertible_to<const Texts&, std::string_view> && ...))
      Names(const Texts&... texts) {  // NOLINT(google-explicit-constructor)
    list.reserve(sizeof...(texts));
    (list.emplace_back(std::string_view(texts)), ...);
  }

  std::vector<std::string> list;
};

}  // namespace weft
