#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace weft::test {

// A child process that is killed, at the latest, when this goes out of scope.
class WorkerProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  // Runs `command`; `environment` is added to ours. Its output goes to ours.
  WorkerProcess(const std::vector<std::string>& command, const Environment& environment);
  ~WorkerProcess();
  WorkerProcess(WorkerProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  WorkerProcess& operator=(WorkerProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Waits for its end: the exit code, or 128 + the signal that ended it.
  int wait();

 private:
  pid_t pid_ = -1;
};

}  // namespace weft::test
