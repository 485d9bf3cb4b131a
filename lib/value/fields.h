#pragma once

#include <string_view>
#include <tuple>

namespace weft {

// One described member of a struct: its name on the wire and where it is.
template <typename Struct, typename Member>
struct FieldInfo {
  std::string_view name;
  Member Struct::*member;
};

template <typename Struct, typename Member>
constexpr FieldInfo<Struct, Member> field_info(std::string_view name, Member Struct::*member) {
  return {name, member};
}

// A struct that WEFT_FIELDS has described: `weft_fields(const T*)` gives the tuple of its FieldInfos.
template <typename T>
concept Described = requires(const T* self) {
  weft_fields(self);
};

}  // namespace weft

// Describes a plain struct once, at namespace scope, next to the struct: WEFT_FIELDS(AddParams, a, b)
// From then on it can be params, a result, an event's payload or a part of another struct. Up to 340 members.
#define WEFT_FIELDS(Struct, ...)                                                       \
  [[maybe_unused]] constexpr auto weft_fields(const Struct*) {                         \
    return std::make_tuple(__VA_OPT__(WEFT_EXPAND_(WEFT_EACH_(Struct, __VA_ARGS__)))); \
  }

#define WEFT_FIELD_(Struct, member) ::weft::field_info(#member, &Struct::member)
#define WEFT_PARENS_ ()
#define WEFT_EXPAND_(...) WEFT_EXPAND4_(WEFT_EXPAND4_(WEFT_EXPAND4_(WEFT_EXPAND4_(__VA_ARGS__))))
#define WEFT_EXPAND4_(...) WEFT_EXPAND3_(WEFT_EXPAND3_(WEFT_EXPAND3_(WEFT_EXPAND3_(__VA_ARGS__))))
#define WEFT_EXPAND3_(...) WEFT_EXPAND2_(WEFT_EXPAND2_(WEFT_EXPAND2_(WEFT_EXPAND2_(__VA_ARGS__))))
#define WEFT_EXPAND2_(...) WEFT_EXPAND1_(WEFT_EXPAND1_(WEFT_EXPAND1_(WEFT_EXPAND1_(__VA_ARGS__))))
#define WEFT_EXPAND1_(...) __VA_ARGS__
#define WEFT_EACH_(Struct, member, ...) \
  WEFT_FIELD_(Struct, member) __VA_OPT__(, WEFT_EACH_AGAIN_ WEFT_PARENS_(Struct, __VA_ARGS__))
#define WEFT_EACH_AGAIN_() WEFT_EACH_
