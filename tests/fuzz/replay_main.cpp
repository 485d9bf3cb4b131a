// Feeds every file of a corpus to its target, without a fuzzer: CORPUS/<target>/<file>. Further arguments are
// files of the target that their folder names.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace fs = std::filesystem;

int main(int argc, char** argv) {
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string name = fs::absolute(file).parent_path().filename();
    const weft::fuzz::Target* target = weft::fuzz::find_target(name);
    std::ifstream in(file, std::ios::binary);
    if (target == nullptr || !in.is_open()) {
      std::fprintf(stderr, "%s: %s\n", file.c_str(), target == nullptr ? "no target" : "cannot be read");
      return EXIT_FAILURE;
    }
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    std::fprintf(stderr, "%s\n", file.c_str());  // The last one is the one that broke it.
    target->run(bytes);
  }
  std::printf("%zu files\n", files.size());
  return files.empty() ? EXIT_FAILURE : EXIT_SUCCESS;
}
