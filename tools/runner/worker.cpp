#include "tools/runner/worker.h"

#include <cstdio>
#include <cstdlib>

#include "tools/runner/module_loader.h"

namespace weft::runner {

namespace {

int fail(const Error& error) {
  std::fprintf(stderr, "weft-runner: %s\n", error.message().c_str());
  return 1;
}

}  // namespace

int run_worker(Settings settings, const std::vector<std::string>& modules) {
  try {
    App app(std::move(settings.app));
    for (const std::string& module : modules) {
      auto services = load_module(module);
      if (!services) return fail(services.error());
      for (auto& service : *services) app.add_service(std::move(service));
    }
    const int code = app.run();
    if (code > 128) {  // A second signal: nothing is waited for, handlers on the pool of workers neither.
      std::fflush(nullptr);
      std::_Exit(code);
    }
    return code;
  } catch (const Exception& error) {
    return fail(error.error());
  } catch (...) {
    return fail(Error::from_exception(std::current_exception()));
  }
}

}  // namespace weft::runner
