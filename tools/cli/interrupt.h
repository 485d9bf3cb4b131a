#pragma once

#include <functional>
#include <memory>
#include <mutex>

namespace weft::cli {

// SIGINT, SIGTERM and SIGHUP, as long as this lives: instead of ending the process at once they run a
// function that says goodbye first. A second signal, or two seconds, end it anyway. Exit code: 128 + the
// signal.
//
// Made before any other thread, so that all of them leave the signals to this. SIGPIPE is ignored: writing to
// a closed pipe is an error of that write.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // `leave` runs on a thread of its own and ends the process, sooner or later, with the exit code it is
  // given. Null: signals end the process at once.
  void on_interrupt(std::function<void(int exit_code)> leave);

 private:
  struct Shared {
    std::mutex mutex;
    std::function<void(int)> leave;  // Guarded by mutex; called under it.
  };
  std::shared_ptr<Shared> shared_;  // The watching thread is never joined.
};

}  // namespace weft::cli
