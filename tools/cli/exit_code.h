#pragma once

namespace weft::cli {

// What the weft command tells the shell. Scripts stand on it: docs/cli.md has the table.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,  // The call failed, a node did not answer, the output could not be written.
  kExitUsage = 2,   // The command line is wrong.
  kExitNobody = 3,  // No node, no such service, action or node.
  kExitNoMesh = 4,  // The mesh could not be joined.
};

}  // namespace weft::cli
