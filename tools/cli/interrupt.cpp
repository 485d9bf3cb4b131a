#include "tools/cli/interrupt.h"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <utility>

namespace weft::cli {

namespace {

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

}  // namespace

Interrupts::Interrupts() : shared_(std::make_shared<Shared>()) {
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread([shared = shared_, set] {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) return;
    const int exit_code = 128 + signal;
    {
      const std::lock_guard lock(shared->mutex);
      if (!shared->leave) std::_Exit(exit_code);
      shared->leave(exit_code);
    }
    const timespec patience{2, 0};
    sigtimedwait(&set, nullptr, &patience);
    std::_Exit(exit_code);
  }).detach();
}

Interrupts::~Interrupts() {
  on_interrupt(nullptr);
}

void Interrupts::on_interrupt(std::function<void(int)> leave) {
  const std::lock_guard lock(shared_->mutex);
  shared_->leave = std::move(leave);
}

}  // namespace weft::cli
