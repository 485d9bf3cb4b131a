#include "tools/runner/service_selection.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace weft::runner {

namespace {

namespace fs = std::filesystem;

// All files below `folder`, sorted, so that loading does not depend on the file system's order.
std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (auto at =
           fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, failed);
       !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) files.push_back(at->path().lexically_normal().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> matching_below(const fs::path& folder, std::string_view glob) {
  std::vector<std::string> matches;
  for (const std::string& file : files_below(folder)) {
    if (matches_glob(fs::path(file).lexically_relative(folder).string(), glob)) matches.push_back(file);
  }
  return matches;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> resolve(const std::string& pattern, const fs::path& base, const std::string& mask) {
  std::error_code failed;
  const fs::path direct = fs::path(pattern).is_absolute() ? fs::path(pattern) : base / pattern;
  if (fs::is_directory(direct, failed)) return matching_below(direct.lexically_normal(), mask);
  if (fs::is_regular_file(direct, failed)) return {direct.lexically_normal().string()};
  const bool is_glob = pattern.find_first_of("*?") != std::string::npos;
  if (is_glob) {
    if (fs::path(pattern).is_absolute()) {  // Search from the last folder without wildcards.
      const std::size_t star = pattern.find_first_of("*?");
      const std::size_t slash = pattern.rfind('/', star);
      return matching_below(pattern.substr(0, slash + 1), std::string_view(pattern).substr(slash + 1));
    }
    return matching_below(base, pattern);
  }
  for (const char* prefix : {"", "lib"}) {
    const fs::path named = direct.parent_path() / (prefix + direct.filename().string() + ".so");
    if (fs::is_regular_file(named, failed)) return {named.lexically_normal().string()};
  }
  return {};
}

}  // namespace

bool matches_glob(std::string_view path, std::string_view glob) {
  if (glob.empty()) return path.empty();
  if (glob.starts_with("**/")) {
    for (std::size_t at = 0; at != std::string_view::npos;) {
      if (matches_glob(path.substr(at), glob.substr(3))) return true;
      const std::size_t slash = path.find('/', at);
      at = slash == std::string_view::npos ? slash : slash + 1;
    }
    return false;
  }
  if (glob.starts_with("**")) {
    for (std::size_t at = 0; at <= path.size(); ++at) {
      if (matches_glob(path.substr(at), glob.substr(2))) return true;
    }
    return false;
  }
  if (glob.front() == '*') {
    for (std::size_t at = 0; at <= path.size(); ++at) {
      if (matches_glob(path.substr(at), glob.substr(1))) return true;
      if (at < path.size() && path[at] == '/') return false;
    }
    return false;
  }
  if (path.empty()) return false;
  if (glob.front() == '?' ? path.front() == '/' : path.front() != glob.front()) return false;
  return matches_glob(path.substr(1), glob.substr(1));
}

ServiceSelection select_services(std::span<const std::string> arguments, const std::string& services,
                                 const std::string& service_dir, const std::string& mask) {
  const fs::path base = service_dir.empty() ? fs::path(".") : fs::path(service_dir);
  std::vector<std::pair<std::string, fs::path>> patterns;
  if (!services.empty()) {
    std::string_view rest = services;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (std::string name = trimmed(rest.substr(0, comma)); !name.empty())
        patterns.emplace_back(std::move(name), base);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  } else {
    if (!service_dir.empty()) patterns.emplace_back(".", base);
    for (const std::string& argument : arguments) patterns.emplace_back(argument, fs::path("."));
  }

  ServiceSelection selection;
  for (auto& [pattern, folder] : patterns) {
    const bool removes = pattern.starts_with('!');
    const std::vector<std::string> matches = resolve(removes ? pattern.substr(1) : pattern, folder, mask);
    if (matches.empty()) {
      selection.warnings.push_back("No service module matches '" + pattern + "' in '" + folder.string() +
                                   "'.");
      continue;
    }
    for (const std::string& file : matches) {
      const auto known = std::find(selection.files.begin(), selection.files.end(), file);
      if (removes && known != selection.files.end()) selection.files.erase(known);
      if (!removes && known == selection.files.end()) selection.files.push_back(file);
    }
  }
  return selection;
}

}  // namespace weft::runner
