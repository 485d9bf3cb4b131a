#pragma once

#include <uv.h>

#include <memory>
#include <string>
#include <string_view>

#include "lib/error/error.h"

namespace weft {

// libuv keeps a handle until its close callback has run: closing frees it.
struct CloseThenFree {
  template <typename Handle>
  void operator()(Handle* handle) const {
    uv_close(reinterpret_cast<uv_handle_t*>(handle),
             [](uv_handle_t* closed) { delete reinterpret_cast<Handle*>(closed); });
  }
};
template <typename Handle>
using HandlePtr = std::unique_ptr<Handle, CloseThenFree>;  // Once uv_*_init has succeeded.

// "connect to 10.0.0.1:80: connection refused", type "ECONNREFUSED", retryable.
[[nodiscard]] inline Error uv_error(std::string_view what, int status) {
  return Error(ErrorClass::kRetryable, std::string(what) + ": " + uv_strerror(status), uv_err_name(status));
}

}  // namespace weft
