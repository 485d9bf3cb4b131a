#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/value/token.h"

namespace weft {

// Finds one scalar in a value while it is written, without building a tree: what a shard key in a typed
// struct costs nothing but the walk for.
class PathWriter final : public ValueWriter {
 public:
  // "user.tags[1].id" as its steps.
  [[nodiscard]] static std::vector<std::string> steps_of(std::string_view path);

  // `steps` is borrowed; the JavaScript text of what is found is appended to `out`.
  PathWriter(const std::vector<std::string>& steps, std::string& out) : steps_(steps), out_(out) {}

  enum class Found { kNothing, kText, kContainer };  // Nothing: missing or null.
  [[nodiscard]] Found found() const { return found_; }

  void null() override;
  void boolean(bool value) override;
  void integer(std::int64_t value) override;
  void unsigned_integer(std::uint64_t value) override;
  void number(double value) override;
  void string(std::string_view value) override;
  void binary(std::string_view value) override;
  void timestamp(std::int64_t ms) override;
  void begin_array(std::size_t count) override;
  void end_array() override { end(); }
  void begin_object(std::size_t count) override;
  void key(std::string_view name) override;
  void end_object() override { end(); }

 private:
  template <typename Scalar>
  void scalar(Scalar&& value);
  // Whether the value that comes now is on the way to the goal, or the goal.
  bool enter_value();
  void begin(bool array);
  void end();

  const std::vector<std::string>& steps_;
  std::string& out_;
  Found found_ = Found::kNothing;
  bool done_ = false;           // Found, or known to be missing.
  std::size_t depth_ = 0;       // Containers open.
  std::size_t path_depth_ = 0;  // Of these, how many from the outside are on the way.
  bool in_array_ = false;       // What the innermost container on the way is.
  std::size_t index_ = 0;       // Its next item.
  bool key_matches_ = false;    // Its last key.
};

}  // namespace weft
