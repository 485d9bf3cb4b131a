#include "broker/strategy/key_finder.h"

#include "broker/strategy/js_text.h"
#include "broker/strategy/path_writer.h"

namespace weft {

KeyFinder::KeyFinder(std::string_view path, std::function<Value(const Selection&)> function)
    : function_(std::move(function)),
      in_meta_(path.starts_with('#')),
      path_(path.substr(in_meta_ ? 1 : 0)),
      steps_(PathWriter::steps_of(path_)) {}

bool KeyFinder::find(const Selection& selection, std::string_view& key) {
  scratch_.clear();
  if (function_) {
    const Value value = function_(selection);
    if (value.is_null()) return false;
    append_js_text(value, scratch_);
    key = scratch_;
    return true;
  }
  if (steps_.empty()) return false;
  const Payload& source = in_meta_ ? selection.meta : selection.params;
  if (const Value* tree = source.tree()) {
    const bool is_member = steps_.size() == 1 && tree->is_object();
    return text_of(is_member ? tree->find(steps_[0]) : tree->find_path(path_), key);
  }
  PathWriter writer(steps_, scratch_);
  try {
    source.write(writer);
  } catch (const std::exception&) {  // Bytes that are no value: whoever gets the call will say so.
    return false;
  }
  if (writer.found() == PathWriter::Found::kContainer) {
    const auto tree = source.to_value();
    return tree.ok() && text_of(tree->find_path(path_), key);
  }
  key = scratch_;
  return writer.found() == PathWriter::Found::kText;
}

bool KeyFinder::text_of(const Value* value, std::string_view& key) {
  if (value == nullptr || value->is_null()) return false;
  if (value->is_string()) {
    key = value->str();
    return true;
  }
  append_js_text(*value, scratch_);
  key = scratch_;
  return true;
}

}  // namespace weft
