#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "broker/service.h"
#include "lib/base/config.h"

namespace weft {

// Where a module puts its services. Borrowed during the registration.
class ServiceSink {
 public:
  virtual void add_service(std::shared_ptr<Service> service) = 0;
  template <typename S, typename... Args>
  S& add(Args&&... args) {
    auto service = std::make_shared<S>(std::forward<Args>(args)...);
    S& added = *service;
    add_service(std::move(service));
    return added;
  }

 protected:
  ~ServiceSink() = default;
};

// What a shared object tells weft-runner about itself, as plain C data: it is read before any of its C++ is
// trusted.
struct ModuleDescriptor {
  std::uint32_t abi;         // kModuleAbi of the headers it was built with.
  std::uint32_t size;        // sizeof(ModuleDescriptor).
  const char* compiler;      // "g++ 12" or "clang++ 14": major versions share an ABI with themselves.
  const char* stdlib;        // "libstdc++ cxx11" …
  const char* weft_version;  // "0.1.0".
  void (*register_services)(ServiceSink* sink);  // May throw.
};

// Raised with every change of what crosses the border between runner and module.
inline constexpr std::uint32_t kModuleAbi = 1;

#define WEFT_STRINGIZE2_(x) #x
#define WEFT_STRINGIZE_(x) WEFT_STRINGIZE2_(x)
#if defined(__clang__)
#define WEFT_COMPILER_ "clang++ " WEFT_STRINGIZE_(__clang_major__)
#else
#define WEFT_COMPILER_ "g++ " WEFT_STRINGIZE_(__GNUC__)
#endif
#if defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
#define WEFT_STDLIB_ "libstdc++ cxx11"
#elif defined(_LIBCPP_VERSION)
#define WEFT_STDLIB_ "libc++"
#else
#define WEFT_STDLIB_ "libstdc++ old"
#endif

}  // namespace weft

// The one entry point of a module for weft-runner:
//
//   WEFT_MODULE(services) { services.add<Greeter>(); }
//
// Build it as a shared object with -fvisibility=hidden. The image stays mapped until the process ends.
#define WEFT_MODULE(sink)                                                                              \
  static void weft_register_services_(::weft::ServiceSink& sink);                                      \
  extern "C" __attribute__((visibility("default"))) const ::weft::ModuleDescriptor* weft_module_v1() { \
    static constexpr ::weft::ModuleDescriptor kDescriptor = {                                          \
        ::weft::kModuleAbi, sizeof(::weft::ModuleDescriptor),                                          \
        WEFT_COMPILER_,     WEFT_STDLIB_,                                                              \
        WEFT_VERSION,       [](::weft::ServiceSink* given) { weft_register_services_(*given); }};                                       \
    return &kDescriptor;                                                                               \
  }                                                                                                    \
  static void weft_register_services_(::weft::ServiceSink& sink)
