#pragma once

#include <memory>
#include <string>
#include <vector>

#include "broker/service.h"
#include "lib/error/result.h"

namespace weft {
struct ModuleDescriptor;
}

namespace weft::runner {

// Loads a service module (a shared object with WEFT_MODULE) and gives its services. What it was built with is
// compared with this process before any of its code runs, its loading apart. The image stays mapped until the
// process ends.
//
// A file that is no module, was built otherwise, or throws, is an error that names the file, what is wrong,
// and what to do.
[[nodiscard]] Result<std::vector<std::shared_ptr<Service>>> load_module(const std::string& path);

// Whether a module that says this of itself fits this process; `descriptor` may be null, and so may what it
// points to.
[[nodiscard]] Result<> check_descriptor(const std::string& path, const ModuleDescriptor* descriptor);

}  // namespace weft::runner
