// What every snippet in this folder starts from: the words of a user's program.
#pragma once

#include "broker/broker.h"

struct AddParams {
  std::int64_t a = 0, b = 0;
};
WEFT_FIELDS(AddParams, a, b)

struct User {
  std::string name;
  std::vector<std::string> tags;
};
WEFT_FIELDS(User, name, tags)

struct Undescribed {
  int x = 0;
};

inline constexpr weft::Action<AddParams, std::int64_t> kAdd{"math.add"};
inline constexpr weft::Action<User, User> kGreet{"math.greet"};
