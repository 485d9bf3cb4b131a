// The libFuzzer program: FUZZ_TARGET names the target; --list-targets lists them.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/fuzz.h"

namespace {
const weft::fuzz::Target* target = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace weft::fuzz;
  if (*argc > 1 && std::string_view((*argv)[1]) == "--list-targets") {
    for (const auto& table :
         {codec_targets(), differential_targets(), packet_targets(), setting_targets(), wire_targets()}) {
      for (const Target& each : table) std::printf("%s\n", each.name.data());
    }
    std::exit(EXIT_SUCCESS);
  }
  const char* name = std::getenv("FUZZ_TARGET");
  target = name != nullptr ? find_target(name) : nullptr;
  if (target == nullptr) {
    std::fprintf(stderr, "FUZZ_TARGET must name one of --list-targets\n");
    std::exit(EXIT_FAILURE);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
