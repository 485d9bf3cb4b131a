#include "tests/support/nats_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace weft::test {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A connected socket, or -1.
int connect_to(std::uint16_t port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

// The server greets whom it takes.
bool is_up(std::uint16_t port) {
  const int descriptor = connect_to(port);
  if (descriptor < 0) return false;
  char greeting[5];
  const bool has_greeted = recv(descriptor, greeting, sizeof greeting, MSG_WAITALL) == sizeof greeting;
  close(descriptor);
  return has_greeted;
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

}  // namespace

std::uint16_t free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    give_up("No free port.");
  }
  close(descriptor);
  return ntohs(address.sin_port);
}

NatsServer::NatsServer(Options options)
    : options_(std::move(options)), port_(free_port()), monitor_port_(options_.monitor ? free_port() : 0) {
  start();
}

NatsServer::~NatsServer() {
  kill();
}

void NatsServer::start() {
  std::vector<std::string> words = {"nats-server", "-a", "127.0.0.1", "-p", std::to_string(port_)};
  if (monitor_port_ != 0) {
    words.emplace_back("-m");
    words.push_back(std::to_string(monitor_port_));
  }
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // A test that crashes leaves no server behind.
    if (getppid() != parent) _exit(1);
    const int nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_up(port_)) {
    int status = 0;
    if (waitpid(process_, &status, WNOHANG) == process_) give_up("nats-server ended; is it installed?");
    if (std::chrono::steady_clock::now() > deadline) give_up("nats-server does not come up.");
    std::this_thread::yield();
  }
}

void NatsServer::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

void NatsServer::freeze() {
  ::kill(process_, SIGSTOP);
}

void NatsServer::thaw() {
  ::kill(process_, SIGCONT);
}

std::string NatsServer::ask_monitor(const std::string& path) const {
  const int descriptor = connect_to(monitor_port_);
  if (descriptor < 0) return {};
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  std::string answer;
  if (write(descriptor, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
    char bytes[4096];
    for (ssize_t got = 0; (got = read(descriptor, bytes, sizeof bytes)) > 0;) {
      answer.append(bytes, static_cast<std::size_t>(got));
    }
  }
  close(descriptor);
  const std::size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? std::string() : answer.substr(body + 4);
}

}  // namespace weft::test
