#pragma once

#include <memory>

namespace weft {

// Keeps what the client library and its TLS do from changing or raising signals: the process belongs to its
// user.

// Opens the library, once. By itself it would set SIGPIPE to be ignored, for the whole process and for good;
// what it was is put back. Its threads start with SIGPIPE blocked. Any thread.
void open_nats_library();

// While it lives, writing to a connection that is gone costs this thread an error and no SIGPIPE: needed
// where TLS writes, which knows no MSG_NOSIGNAL. A signal that was pending before stays so.
class BrokenPipeGuard {
 public:
  // Does nothing unless `active`.
  explicit BrokenPipeGuard(bool active);
  ~BrokenPipeGuard();
  BrokenPipeGuard(const BrokenPipeGuard&) = delete;
  BrokenPipeGuard& operator=(const BrokenPipeGuard&) = delete;

 private:
  struct Before;
  std::unique_ptr<Before> before_;  // Null: not active.
};

}  // namespace weft
