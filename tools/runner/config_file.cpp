#include "tools/runner/config_file.h"

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/protocol/serializer.h"

namespace weft::runner {

namespace {

constexpr std::size_t kFileBytesMax = 16UL << 20;

Value from_toml(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    Value object = Value::object();
    for (const auto& [key, value] : *table) object.set(std::string_view(key.str()), from_toml(value));
    return object;
  }
  if (const auto* array = node.as_array()) {
    Value list = Value::array();
    for (const auto& item : *array) list.push_back(from_toml(item));
    return list;
  }
  if (const auto* text = node.as_string()) return Value(text->get());
  if (const auto* integer = node.as_integer()) return Value(integer->get());
  if (const auto* number = node.as_floating_point()) return Value(number->get());
  if (const auto* flag = node.as_boolean()) return Value(flag->get());
  std::ostringstream text;  // Dates and times: as they are written.
  node.visit([&text](const auto& value) {
    if constexpr (!toml::is_table<decltype(value)> && !toml::is_array<decltype(value)>) text << value.get();
  });
  return Value(text.str());
}

Result<> apply_at(Settings& settings, const Value& tree, const std::string& prefix,
                  const std::string& source) {
  const auto table = option_table();
  for (const Member& member : tree.members()) {
    const std::string path = prefix.empty() ? member.key : prefix + "." + member.key;
    const bool is_option =
        std::any_of(table.begin(), table.end(), [&](const OptionSpec& spec) { return spec.path == path; });
    if (!is_option && member.value.is_object()) {
      if (auto applied = apply_at(settings, member.value, path, source); !applied) return applied;
      continue;
    }
    if (auto set = set_option(settings, path, member.value, source); !set) return set;
  }
  return {};
}

}  // namespace

Result<Value> read_config_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error::broker_options("The configuration file '" + path + "' cannot be read.");
  std::string text(kFileBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kFileBytesMax)
    return Error::broker_options("The configuration file '" + path + "' is above 16 MiB.");
  return parse_config(text, path);
}

Result<Value> parse_config(const std::string& text, const std::string& path) {
  if (path.ends_with(".json")) {
    auto parsed = parse_json(text);
    if (!parsed) return Error::broker_options(path + ": this is no JSON: " + parsed.error().message());
    if (!(*parsed).is_object()) return Error::broker_options(path + ": the file must hold an object.");
    return parsed;
  }
  try {
    return from_toml(toml::parse(text, path));
  } catch (const toml::parse_error& error) {
    return Error::broker_options(path + ":" + std::to_string(error.source().begin.line) +
                                 ": this is no TOML: " + std::string(error.description()) + ".");
  }
}

Result<> apply_config(Settings& settings, const Value& tree, const std::string& source) {
  return apply_at(settings, tree, {}, source);
}

Result<std::optional<std::string>> find_config_file(const std::string& named) {
  if (!named.empty()) {
    if (!std::filesystem::exists(named))
      return Error::broker_options("The configuration file '" + named + "' does not exist.");
    return std::optional(named);
  }
  for (const char* name : {"weft.config.toml", "weft.config.json"}) {
    if (std::filesystem::exists(name)) return std::optional<std::string>(name);
  }
  return std::optional<std::string>();
}

}  // namespace weft::runner
