#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weft::test {

// A free port of 127.0.0.1 at the time of asking.
[[nodiscard]] std::uint16_t free_port();

// A nats-server process on a port of its own, which it keeps over restarts.
class NatsServer {
 public:
  struct Options {
    std::vector<std::string> arguments;
    bool monitor = false;  // Serve its state over HTTP.
  };

  NatsServer() : NatsServer(Options{}) {}
  explicit NatsServer(Options options);
  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  // Returns when the server takes connections.
  void start();
  void kill();    // SIGKILL, and waits for its end.
  void freeze();  // SIGSTOP.
  void thaw();    // SIGCONT.
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }

  // The body of what the monitor says to `path`, as "/connz?subs=1".
  [[nodiscard]] std::string ask_monitor(const std::string& path) const;

 private:
  const Options options_;
  const std::uint16_t port_;
  const std::uint16_t monitor_port_;
  pid_t process_ = -1;
};

}  // namespace weft::test
