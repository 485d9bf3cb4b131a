#include "broker/strategy/path_writer.h"

#include <algorithm>

#include "broker/strategy/js_text.h"
#include "lib/value/value.h"

namespace weft {

std::vector<std::string> PathWriter::steps_of(std::string_view path) {
  std::vector<std::string> steps;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find_first_of(".[]"), path.size());
    if (end > 0) steps.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return steps;
}

bool PathWriter::enter_value() {
  if (done_) return false;
  if (depth_ == 0) return true;
  if (depth_ != path_depth_) return false;
  return in_array_ ? std::to_string(index_++) == steps_[depth_ - 1] : key_matches_;
}

template <typename Scalar>
void PathWriter::scalar(Scalar&& value) {
  if (!enter_value()) return;
  done_ = true;
  if (depth_ != steps_.size()) return;  // A scalar where the way goes on.
  append_js_text(Value(std::forward<Scalar>(value)), out_);
  found_ = Found::kText;
}

void PathWriter::null() {
  if (enter_value()) done_ = true;
}
void PathWriter::boolean(bool value) {
  scalar(value);
}
void PathWriter::integer(std::int64_t value) {
  scalar(value);
}
void PathWriter::unsigned_integer(std::uint64_t value) {
  scalar(value);
}
void PathWriter::number(double value) {
  scalar(value);
}
void PathWriter::string(std::string_view value) {
  scalar(value);
}
void PathWriter::binary(std::string_view value) {
  scalar(Binary{std::string(value)});
}
void PathWriter::timestamp(std::int64_t ms) {
  scalar(Timestamp{ms});
}

void PathWriter::begin_array(std::size_t) {
  begin(true);
}
void PathWriter::begin_object(std::size_t) {
  begin(false);
}

void PathWriter::begin(bool array) {
  if (enter_value()) {
    if (depth_ == steps_.size()) {
      done_ = true;
      found_ = Found::kContainer;
    } else {
      path_depth_ = depth_ + 1;
      in_array_ = array;
      index_ = 0;
      key_matches_ = false;
    }
  }
  ++depth_;
}

void PathWriter::end() {
  --depth_;
  if (depth_ < path_depth_) done_ = true;  // No other member has the name of the one just left.
}

void PathWriter::key(std::string_view name) {
  if (!done_ && depth_ == path_depth_ && !in_array_) key_matches_ = name == steps_[depth_ - 1];
}

}  // namespace weft
