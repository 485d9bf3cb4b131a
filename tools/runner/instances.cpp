#include "tools/runner/instances.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <set>

namespace weft::runner {

namespace {

int exit_code_of(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 1;
}

void signal_all(const std::set<pid_t>& workers, int signal) {
  for (const pid_t worker : workers) ::kill(worker, signal);
}

}  // namespace

int run_instances(int count, const std::function<int(int number)>& work) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&watched, signal);
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &watched, &before);

  const pid_t parent = ::getpid();
  std::set<pid_t> workers;
  for (int number = 1; number <= count; ++number) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // No orphans, however the parent ends.
      ::setpgid(0, 0);  // A terminal's Ctrl-C reaches the parent alone, which passes it on once.
      ::sigprocmask(SIG_SETMASK, &before, nullptr);
      if (::getppid() != parent) ::_exit(1);
      ::_exit(work(number));
    }
    if (child < 0) {
      std::perror("weft-runner: fork");
      break;
    }
    workers.insert(child);
  }

  int code = static_cast<int>(workers.size()) == count ? 0 : 1;
  bool stopping = code != 0;
  if (stopping) signal_all(workers, SIGTERM);
  while (!workers.empty()) {
    int signal = 0;
    ::sigwait(&watched, &signal);
    if (signal != SIGCHLD) {
      signal_all(workers, stopping ? SIGKILL : SIGTERM);
      stopping = true;
      continue;
    }
    int status = 0;
    for (pid_t ended = ::waitpid(-1, &status, WNOHANG); ended > 0; ended = ::waitpid(-1, &status, WNOHANG)) {
      workers.erase(ended);
      const int worker_code = exit_code_of(status);
      if (worker_code != 0 && code == 0) code = worker_code;
      if (worker_code != 0 && !stopping) {
        std::fprintf(stderr, "weft-runner: worker %d ended with code %d: stopping the others.\n",
                     static_cast<int>(ended), worker_code);
        stopping = true;
        signal_all(workers, SIGTERM);
      }
    }
  }
  return code;
}

}  // namespace weft::runner
