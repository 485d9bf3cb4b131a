#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/strategy/strategy.h"

namespace weft {

// Finds the key by which a call is placed. Text that it found allocates nothing, once there was one as long.
class KeyFinder {
 public:
  // `path` leads into the params (an event's payload), "user.id", "ids[0]"; or, behind a '#', into the meta.
  // Empty: there is no key. `function`, if there is one, finds the key instead.
  KeyFinder(std::string_view path, std::function<Value(const Selection&)> function);

  // The JavaScript text of the key, valid until the next call. False when it is missing or null.
  [[nodiscard]] bool find(const Selection& selection, std::string_view& key);

 private:
  bool text_of(const Value* value, std::string_view& key);

  std::function<Value(const Selection&)> function_;
  bool in_meta_;
  std::string path_;
  std::vector<std::string> steps_;  // Of the path.
  std::string scratch_;
};

}  // namespace weft
