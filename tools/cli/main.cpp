// weft: looks into a mesh from the command line, and calls what is in it. See docs/cli.md.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tools/cli/command_line.h"
#include "tools/cli/commands.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/params.h"
#include "tools/cli/session.h"

namespace weft::cli {

namespace {

Result<std::string> read_source(std::string_view source) {
  std::ostringstream content;
  if (source == "-") {
    content << std::cin.rdbuf();
    return content.str();
  }
  const std::string path(source.substr(1));
  std::ifstream file(path);
  if (file) content << file.rdbuf();
  if (!file) return Error(ErrorClass::kValidation, "The file '" + path + "' cannot be read.", "USAGE");
  return content.str();
}

int answer(const Answer& told) {
  std::fputs(told.text.c_str(), told.exit_code == kExitOk ? stdout : stderr);
  return told.exit_code;
}

Work work_of(const CommandLine& line, std::optional<Value> params) {
  switch (line.command) {
    case Command::kCall:
      return [params = std::move(params)](Session& session) { return run_call(session, params); };
    case Command::kEmit:
    case Command::kBroadcast:
      return [params = std::move(params)](Session& session) { return run_event(session, params); };
    case Command::kPing:
      return run_ping;
    default:
      return run_listing;
  }
}

int run(std::vector<std::string> words) {
  const auto parsed =
      parse_command_line(std::move(words), [](const char* name) { return std::getenv(name); });
  if (const auto* told = std::get_if<Answer>(&parsed)) return answer(*told);
  const auto& line = std::get<CommandLine>(parsed);
  const auto read = [](std::string_view source) { return read_source(source); };
  auto params = parse_params(line.send.words, read);
  if (!params) {
    return answer(
        {"weft: " + params.error().message() + "\n`weft call --help` shows how params are written.\n",
         kExitUsage});
  }
  Interrupts interrupts;
  Output output(look_at_terminal(), line.mesh.json);
  const int exit_code = run_in_mesh(line, output, interrupts, work_of(line, std::move(*params)));
  if (output.flush()) return exit_code;
  std::fputs("weft: the output could not be written.\n", stderr);
  return exit_code == kExitOk ? kExitFailed : exit_code;
}

}  // namespace

}  // namespace weft::cli

int main(int argc, char** argv) {
  return weft::cli::run(std::vector<std::string>(argv + 1, argv + argc));
}
