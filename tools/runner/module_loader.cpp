#include "tools/runner/module_loader.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string_view>

#include "weft/module.h"

namespace weft::runner {

namespace {

class Collector final : public ServiceSink {
 public:
  void add_service(std::shared_ptr<Service> service) override { services.push_back(std::move(service)); }
  std::vector<std::shared_ptr<Service>> services;
};

Error load_error(const std::string& path, const std::string& what) {
  return Error(ErrorClass::kBase, "Service module '" + path + "': " + what, "SERVICE_LOAD_ERROR");
}

// What a static object of a module throws cannot be caught: the loader's frames lie between. It ends the
// process, by this with a word about it and code 1.
class ThrownByStatics {
 public:
  explicit ThrownByStatics(const std::string& path) {
    path_ = &path;
    before_ = std::set_terminate([] {
      const Error error = load_error(*path_, "it threw while it was loaded: " +
                                                 Error::from_exception(std::current_exception()).message());
      std::fprintf(stderr, "weft-runner: %s\n", error.message().c_str());
      std::_Exit(1);
    });
  }
  ~ThrownByStatics() { std::set_terminate(before_); }
  ThrownByStatics(const ThrownByStatics&) = delete;
  ThrownByStatics& operator=(const ThrownByStatics&) = delete;

 private:
  static inline const std::string* path_ = nullptr;
  std::terminate_handler before_;
};

std::string difference(std::string_view what, std::string_view module, std::string_view own) {
  return "it was built with " + std::string(what) + " " + std::string(module) + ", weft-runner with " +
         std::string(own) + ". Build it again against this weft.";
}

}  // namespace

Result<std::vector<std::shared_ptr<Service>>> load_module(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  if (failed || !std::filesystem::is_regular_file(absolute, failed))
    return load_error(path, "there is no such file.");
  void* handle = nullptr;
  {
    const ThrownByStatics guard(path);
    handle = ::dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return load_error(
        path, "it cannot be loaded: " + std::string(reason != nullptr ? reason : "unknown reason") + ".");
  }
  using Entry = const ModuleDescriptor* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(handle, "weft_module_v1"));
  if (entry == nullptr)
    return load_error(path, "it has no weft_module_v1: does one of its files say WEFT_MODULE(…)?");

  const ModuleDescriptor* descriptor = entry();
  if (const Result<> fits = check_descriptor(path, descriptor); !fits) return fits.error();
  Collector collector;
  try {
    descriptor->register_services(&collector);
  } catch (...) {
    return load_error(
        path, "its WEFT_MODULE threw: " + Error::from_exception(std::current_exception()).to_string());
  }
  return std::move(collector.services);
}

Result<> check_descriptor(const std::string& path, const ModuleDescriptor* descriptor) {
  if (descriptor == nullptr) return load_error(path, "its weft_module_v1 gives nothing.");
  if (descriptor->abi != kModuleAbi) {
    return load_error(path,
                      difference("module ABI", std::to_string(descriptor->abi), std::to_string(kModuleAbi)));
  }
  // Nothing behind these two is read before they are right.
  if (descriptor->size != sizeof(ModuleDescriptor))
    return load_error(path, "its descriptor has a wrong size. Build it again.");
  const struct {
    const char* what;
    const char* module;
    std::string_view own;
  } texts[] = {{"compiler", descriptor->compiler, WEFT_COMPILER_},
               {"standard library", descriptor->stdlib, WEFT_STDLIB_},
               {"weft", descriptor->weft_version, WEFT_VERSION}};
  for (const auto& [what, module, own] : texts) {
    const std::string_view said = module != nullptr ? std::string_view(module) : "nothing";
    if (said != own) return load_error(path, difference(what, said.substr(0, 100), own));
  }
  if (descriptor->register_services == nullptr)
    return load_error(path, "its descriptor has no function that registers services. Build it again.");
  return {};
}

}  // namespace weft::runner
