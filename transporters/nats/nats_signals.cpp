#include "transporters/nats/nats_signals.h"

#include <nats/nats.h>
#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <mutex>

namespace weft {

namespace {

sigset_t broken_pipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  return signals;
}

}  // namespace

void open_nats_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    const BrokenPipeGuard inherited(true);
    struct sigaction before {};
    const bool is_known = sigaction(SIGPIPE, nullptr, &before) == 0;
    nats_Open(-1);  // If it fails so does every later call, which is where it shows.
    if (is_known) sigaction(SIGPIPE, &before, nullptr);
  });
}

struct BrokenPipeGuard::Before {
  bool was_pending = false;
  sigset_t mask;
};

BrokenPipeGuard::BrokenPipeGuard(bool active) {
  if (!active) return;
  before_ = std::make_unique<Before>();
  sigset_t pending;
  before_->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
  const sigset_t signals = broken_pipe();
  pthread_sigmask(SIG_BLOCK, &signals, &before_->mask);
}

BrokenPipeGuard::~BrokenPipeGuard() {
  if (before_ == nullptr) return;
  if (!before_->was_pending) {
    const sigset_t signals = broken_pipe();
    const timespec at_once{};
    while (sigtimedwait(&signals, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before_->mask, nullptr);
}

}  // namespace weft
