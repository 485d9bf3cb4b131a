#include "tools/runner/environment.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace weft::runner {

namespace {

std::string upper_path(std::string_view path) {
  std::string name;
  for (const char c : path)
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// The readings of a text. An option takes the first one that fits: text is taken as it was written, "007"
// too.
std::vector<Value> readings(std::string_view text) {
  std::vector<Value> values{Value(text)};
  const std::string small = lower(text);
  if (small == "true" || small == "false") values.emplace_back(small == "true");
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  double number = 0;
  if (const auto [rest, error] = std::from_chars(text.data(), end, integer);
      error == std::errc() && rest == end) {
    values.emplace_back(integer);
  } else if (const auto [at, failed] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
             failed == std::errc() && at == end) {
    values.emplace_back(number);
  }
  return values;
}

Result<> set_from_text(Settings& settings, std::string_view path, std::string_view text,
                       const std::string& variable) {
  Result<> first;
  bool tried = false;
  for (const Value& value : readings(text)) {
    Result<> set = set_option(settings, path, value, "environment variable " + variable);
    if (set) return set;
    if (!std::exchange(tried, true)) first = std::move(set);
  }
  return first;
}

bool is_option(std::string_view path) {
  const auto table = option_table();
  return std::any_of(table.begin(), table.end(),
                     [path](const OptionSpec& spec) { return spec.path == path; });
}

}  // namespace

std::string path_of_variable(std::string_view name) {
  std::string path;
  bool capital = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '_') {
      if (i + 1 < name.size() && name[i + 1] == '_') {
        path += '.';
        ++i;
        capital = false;
      } else {
        capital = true;
      }
      continue;
    }
    const auto c = static_cast<unsigned char>(name[i]);
    path += static_cast<char>(capital ? std::toupper(c) : std::tolower(c));
    capital = false;
  }
  return path == "nodeId" ? "nodeID" : path;
}

Result<std::vector<std::string>> apply_environment(Settings& settings, std::span<const std::string> entries) {
  std::vector<std::string> warnings;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals + 1 == entry.size()) continue;
    const std::string name = entry.substr(0, equals);
    const std::string_view text = std::string_view(entry).substr(equals + 1);
    for (const std::string_view prefix : {"WEFT_", "MOL_"}) {
      if (!name.starts_with(prefix)) continue;
      const std::string path = path_of_variable(std::string_view(name).substr(prefix.size()));
      if (!is_option(path)) {
        warnings.push_back("Environment variable " + name + " names no option ('" + path +
                           "'). See weft-runner --help-options for all there are.");
      } else if (auto set = set_from_text(settings, path, text, name); !set) {
        return set.error();
      }
    }
    for (const OptionSpec& spec : option_table()) {
      if (name != spec.env && name != upper_path(spec.path)) continue;
      if (auto set = set_from_text(settings, spec.path, text, name); !set) return set.error();
      break;
    }
  }
  return warnings;
}

}  // namespace weft::runner
