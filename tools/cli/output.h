#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "lib/error/error.h"
#include "lib/value/value.h"
#include "tools/cli/table.h"

namespace weft::cli {

// What the two ends of the program can show.
struct Terminal {
  TableStyle tables;         // For standard output.
  bool colours_err = false;  // Colours on standard error.
};

// Looks at standard output and error, NO_COLOR, TERM and the locale.
[[nodiscard]] Terminal look_at_terminal();

// The result goes to standard output; what is said about it, to standard error. With `json`, standard output
// gets exactly one line of JSON. Thread: mute() any, the rest one at a time.
class Output {
 public:
  Output(Terminal terminal, bool json) : terminal_(terminal), json_(json) {}

  [[nodiscard]] bool json() const { return json_; }
  [[nodiscard]] const TableStyle& tables() const { return terminal_.tables; }

  // As one line with json(), else indented.
  void result(const Value& value);
  void result(const Table& table);
  void text(std::string_view text);
  // A line beside the result: for people, whatever stands in standard output.
  void note(std::string_view line);
  // What went wrong: the error, and what may be done about it as lines.
  void failure(const Error& error, std::string_view hint = {});

  // From now on nothing is written.
  void mute() { muted_ = true; }
  // Whether all that was written has arrived.
  [[nodiscard]] bool flush();

 private:
  Terminal terminal_;
  bool json_;
  std::atomic<bool> muted_ = false;
};

}  // namespace weft::cli
