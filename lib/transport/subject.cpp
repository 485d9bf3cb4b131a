#include "lib/transport/subject.h"

namespace weft {

namespace {

// Cuts the first token off `rest`; `rest` is null after the last one.
std::string_view take_token(std::optional<std::string_view>& rest) {
  const std::size_t dot = rest->find('.');
  const std::string_view token = rest->substr(0, dot);
  if (dot == std::string_view::npos) {
    rest.reset();
  } else {
    rest->remove_prefix(dot + 1);
  }
  return token;
}

}  // namespace

std::string subject_prefix(std::string_view name_space) {
  std::string prefix = "MOL";
  if (!name_space.empty()) prefix.append("-").append(name_space);
  return prefix;
}

std::optional<std::string> subject_name_fault(std::string_view name) {
  if (name.empty()) return "it is empty";
  char before = '.';
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7f) return "it has a blank or a control character";
    if (c == '*' || c == '>') return std::string("it has a '") + c + "', which is a wildcard of the bus";
    if (c == '.' && before == '.') return "it begins with a dot or has two dots in a row";
    before = c;
  }
  if (before == '.') return "it ends with a dot";
  return std::nullopt;
}

bool is_subject_name(std::string_view name) {
  char before = '.';
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7f || c == '*' || c == '>' || (c == '.' && before == '.')) return false;
    before = c;
  }
  return before != '.';
}

std::string event_subscription(std::string_view pattern) {
  std::string subscription;
  std::optional<std::string_view> rest = pattern;
  while (rest.has_value()) {
    const std::string_view token = take_token(rest);
    if (!subscription.empty()) subscription += '.';
    const std::size_t star = token.find('*');
    const bool ends_with_star = !rest.has_value() && token.size() > 1 && star == token.size() - 1;
    if (ends_with_star || token.find('?') != std::string_view::npos ||
        token.find("**") != std::string_view::npos) {
      return subscription + '>';
    }
    subscription += star != std::string_view::npos ? std::string_view("*") : token;
  }
  return subscription;
}

bool subject_matches(std::string_view subscription, std::string_view subject) {
  std::optional<std::string_view> wanted = subscription;
  std::optional<std::string_view> given = subject;
  while (wanted.has_value() && given.has_value()) {
    const std::string_view token = take_token(wanted);
    if (token == ">" && !wanted.has_value()) return true;
    const std::string_view actual = take_token(given);
    if (token != "*" && token != actual) return false;
  }
  return !wanted.has_value() && !given.has_value();
}

}  // namespace weft
