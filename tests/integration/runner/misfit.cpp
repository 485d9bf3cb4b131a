// A module that does not fit, in the way that MISFIT says. It knows nothing of weft: what it tells is plain
// C.

#include <cstdint>

#define STRING2(x) #x
#define STRING(x) STRING2(x)
#ifdef __clang__
#define COMPILER "clang++ " STRING(__clang_major__)
#else
#define COMPILER "g++ " STRING(__GNUC__)
#endif

namespace {

// Which part is wrong; the same numbers stand in meson.build.
enum Misfit { kAbi, kSize, kCompiler, kStdlib, kVersion, kNothing, kNoEntry };
constexpr auto kMisfit = static_cast<Misfit>(MISFIT);

struct Descriptor {
  std::uint32_t abi, size;
  const char *compiler, *stdlib, *weft_version;
  void (*register_services)(void*);
};

[[noreturn]] void never(void*) {
  __builtin_trap();  // Nothing of a module that does not fit may run.
}

const Descriptor kDescriptor = {kMisfit == kAbi ? 99U : 1U,
                                kMisfit == kSize ? 8U : static_cast<std::uint32_t>(sizeof(Descriptor)),
                                kMisfit == kCompiler ? "cc 1" : COMPILER,
                                kMisfit == kStdlib ? "libother" : "libstdc++ cxx11",
                                "0.0.1",
                                never};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Descriptor*
#if MISFIT == 6
misfit_v1() {
#else
weft_module_v1() {
#endif
  return kMisfit == kNothing ? nullptr : &kDescriptor;
}
