#include "tools/cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "lib/protocol/serializer.h"
#include "tools/cli/text.h"

namespace weft::cli {

namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool says_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!is_set(name)) continue;
    const std::string_view value = std::getenv(name);
    return value.find("UTF-8") != value.npos || value.find("utf8") != value.npos ||
           value.find("UTF8") != value.npos;
  }
  return false;
}

std::string described(const Error& error) {
  std::string text = error.name() + ": " + error.message();
  std::string more;
  const auto add = [&more](std::string_view name, std::string_view value) {
    more += (more.empty() ? "" : ", ") + std::string(name) + " " + std::string(value);
  };
  const Value& code = error.detail().code;
  if (code.is_integer()) add("code", std::to_string(code.i64_or(0)));
  if (code.is_string()) add("code", code.str());
  if (!error.type().empty()) add("type", error.type());
  if (!error.node_id().empty()) add("node", error.node_id());
  return more.empty() ? text : text + " (" + more + ")";
}

Value error_value(const Error& error, std::string_view hint) {
  Value shown{{"name", error.name()},
              {"message", error.message()},
              {"code", error.detail().code},
              {"type", error.detail().type},
              {"data", error.data()},
              {"retryable", error.retryable()},
              {"nodeID", error.node_id().empty() ? Value() : Value(error.node_id())}};
  if (!hint.empty()) shown.set("hint", hint);
  return Value{{"error", std::move(shown)}};
}

}  // namespace

Terminal look_at_terminal() {
  const bool dumb = std::getenv("TERM") == nullptr || std::string_view(std::getenv("TERM")) == "dumb";
  const bool colours = !is_set("NO_COLOR") && !dumb;
  Terminal terminal;
  terminal.colours_err = colours && isatty(STDERR_FILENO) == 1;
  if (isatty(STDOUT_FILENO) != 1) return terminal;
  terminal.tables.colours = colours;
  terminal.tables.boxes = says_utf8();
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) terminal.tables.width = size.ws_col;
  return terminal;
}

void Output::text(std::string_view text) {
  if (!muted_) std::fwrite(text.data(), 1, text.size(), stdout);
}

void Output::result(const Value& value) {
  text(printable_json(json_ ? to_json(value) : to_pretty_json(value)) + "\n");
}

void Output::result(const Table& table) {
  text(render(table, terminal_.tables));
}

void Output::note(std::string_view line) {
  if (muted_) return;
  const std::string shown = painted(printable(line), Paint::kDim, terminal_.colours_err) + "\n";
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

void Output::failure(const Error& error, std::string_view hint) {
  if (muted_) return;
  if (json_) return text(printable_json(to_json(error_value(error, hint))) + "\n");
  std::string shown =
      "weft: " + painted(printable(described(error)), Paint::kBad, terminal_.colours_err) + "\n";
  if (!error.data().is_null() && !error.data().empty()) {
    shown += "data: " + printable_json(to_pretty_json(error.data())) + "\n";
  }
  for (std::size_t begin = 0; begin < hint.size();) {
    const std::size_t end = std::min(hint.find('\n', begin), hint.size());
    shown += printable(hint.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

bool Output::flush() {
  // Who reads only the first lines ("| head -1") has what he wanted.
  errno = 0;
  const bool good = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return good || errno == EPIPE;
}

}  // namespace weft::cli
