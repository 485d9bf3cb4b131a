#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/nats_server.h"
#include "tests/support/nats_world.h"

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::NatsNode;
using test::NatsServer;
using test::NatsWorld;

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    char path[] = "/tmp/weft-nats-test-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }

 private:
  std::string path_;
};

// Starts with `options`; the message of the error, or nothing when it became ready.
std::string outcome_of(NatsWorld& world, NatsOptions options) {
  NatsNode node(world, "a", std::move(options));
  if (node.await_ready()) return {};
  return node.started.has_value() ? node.started->error().to_string() : "no outcome";
}

// Of "localhost" and 127.0.0.1, with key.pem beside it.
std::string make_certificate(const Folder& folder) {
  const std::string cert = folder.file("cert.pem");
  const std::string make =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
      "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout " +
      folder.file("key.pem") + " -out " + cert + " 2>/dev/null";
  REQUIRE(std::system(make.c_str()) == 0);
  return cert;
}

class LinesSink final : public LogSink {
 public:
  explicit LinesSink(NatsWorld& world) : world_(world) {}
  void write(const LogRecord& record) override {
    text += std::string(record.text) + "\n";
    world_.wake();
  }
  std::string text;

 private:
  NatsWorld& world_;
};

TEST_SUITE("nats security") {
  TEST_CASE("user and password are given as options or in the URL; wrong ones are an error and no retry") {
    const NatsServer server({.arguments = {"--user", "me", "--pass", "secret"}});
    const std::string port = std::to_string(server.port());
    NatsWorld world;
    CHECK(outcome_of(world, {.url = server.url(), .user = "me", .password = "secret"}).empty());
    CHECK(outcome_of(world, {.url = "nats://me:secret@127.0.0.1:" + port}).empty());
    for (const NatsOptions& options : {NatsOptions{.url = server.url()},
                                       NatsOptions{.url = server.url(), .user = "me", .password = "wrong"},
                                       NatsOptions{.url = "nats://me:wrong@127.0.0.1:" + port}}) {
      const std::string error = outcome_of(world, options);
      CAPTURE(error);
      CHECK(error.find("BrokerOptionsError") != std::string::npos);
      CHECK(error.find("password") != std::string::npos);
      CHECK(error.find("wrong") == std::string::npos);
    }
  }

  TEST_CASE("a token is given as option or in the URL") {
    const NatsServer server({.arguments = {"--auth", "token-1"}});
    const std::string port = std::to_string(server.port());
    NatsWorld world;
    CHECK(outcome_of(world, {.url = server.url(), .token = "token-1"}).empty());
    CHECK(outcome_of(world, {.url = "nats://token-1@127.0.0.1:" + port}).empty());
    CHECK(!outcome_of(world, {.url = server.url(), .token = "token-2"}).empty());
  }

  TEST_CASE("an nkey signs with its seed file") {
    const Folder folder;
    // Key pairs made for this test.
    const std::string key = "UCCX5AN5VJG3US7VXPZEH4M3JGZTAZB6PFI3YRLYFIZD76D2C4Z3WAFU";
    const std::string seed =
        folder.write("right.nk", "SUABJAR6L6JG6R55YPWHPNRSXROLN2ZW7TL3JTKJAHHOLS44C2NQMVN5M4\n");
    const std::string other_seed =
        folder.write("other.nk", "SUADVTPJM7VGLXVGIWPS57I3BWIDIWICX5O4BBARNRYHCMYAOFUYTLLNWU\n");
    const std::string config =
        folder.write("server.conf", "authorization { users = [ { nkey: \"" + key + "\" } ] }\n");
    const NatsServer server({.arguments = {"-c", config}});
    NatsWorld world;
    CHECK(outcome_of(world, {.url = server.url(), .nkey = key, .nkey_seed_file = seed}).empty());
    const std::string error =
        outcome_of(world, {.url = server.url(), .nkey = key, .nkey_seed_file = other_seed});
    CHECK(error.find("BrokerOptionsError") != std::string::npos);
  }

  TEST_CASE("TLS: with the CA of the server's certificate, without verification, and not without either") {
    const Folder folder;
    const std::string cert = make_certificate(folder), key = folder.file("key.pem");
    const NatsServer server({.arguments = {"--tls", "--tlscert", cert, "--tlskey", key}});
    const std::string address = "127.0.0.1:" + std::to_string(server.port());
    NatsWorld world;
    CHECK(outcome_of(world, {.url = "tls://" + address, .tls_ca_file = cert}).empty());
    CHECK(outcome_of(world, {.url = "nats://" + address, .tls = true, .tls_verify = false}).empty());
    CHECK(outcome_of(
              world,
              {.url = "nats://" + address, .tls = true, .tls_ca_file = cert, .tls_server_name = "localhost"})
              .empty());
    for (const NatsOptions& options :
         {NatsOptions{.url = "nats://" + address}, NatsOptions{.url = "tls://" + address},
          NatsOptions{.url = "tls://" + address, .tls_ca_file = cert, .tls_server_name = "elsewhere"}}) {
      const std::string error = outcome_of(world, options);
      CAPTURE(error);
      CHECK(error.find("BrokerOptionsError") != std::string::npos);
      CHECK(error.find("transporter.nats.tls") != std::string::npos);
    }

    NatsNode a(world, "a", {.url = "tls://" + address, .tls_ca_file = cert});
    NatsNode b(world, "b", {.url = "tls://" + address, .tls_ca_file = cert});
    REQUIRE((a.await_ready() && b.await_ready()));
    const std::string payload(500000, 'x');
    for (int i = 0; i < 20; ++i) CHECK(a->send("b", PacketType::kRequest, payload + std::to_string(i)).ok());
    CHECK(b.await("REQ " + payload + "19"));
    CHECK(b.listener.lines.size() == 20);
  }

  // In a process of its own: here other tests have opened the library long ago.
  TEST_CASE("neither the library's start nor writing to a server that is gone touches SIGPIPE") {
    for (const bool tls : {false, true}) {
      CAPTURE(tls);
      const pid_t child = fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        execl("/proc/self/exe", "test", "--no-skip", "--test-case=*[own process]*",
              tls ? "--subcase=tls" : "--subcase=plain", nullptr);
        _exit(127);
      }
      int status = 0;
      REQUIRE(waitpid(child, &status, 0) == child);
      CHECK(status == 0);
    }
  }

  TEST_CASE("[own process] SIGPIPE" * doctest::skip()) {
    const Folder folder;
    const bool is_default = std::signal(SIGPIPE, SIG_DFL) != SIG_ERR;
    REQUIRE(is_default);
    std::vector<std::string> arguments;
    NatsOptions options;
    SUBCASE("plain") {}
    SUBCASE("tls") {
      arguments = {"--tls", "--tlscert", make_certificate(folder), "--tlskey", folder.file("key.pem")};
      options = {.tls = true, .tls_verify = false};
    }
    NatsServer server({.arguments = arguments});
    options.url = server.url();
    NatsWorld world;
    NatsNode node(world, "a", options);
    REQUIRE(node.await_ready());
    const std::string payload(300000, 'x');  // Is written at once.
    server.kill();
    // The first write is answered by a reset, and a later one is a broken pipe. The loop, which would see the
    // loss, does not run.
    for (int i = 0; i < 50; ++i) (void)node->send("b", PacketType::kEvent, payload);
    CHECK(node.await("disconnected"));
    struct sigaction now {};
    REQUIRE(sigaction(SIGPIPE, nullptr, &now) == 0);
    CHECK((now.sa_handler == SIG_DFL));
    sigset_t blocked, pending;
    REQUIRE(pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0);
    REQUIRE(sigpending(&pending) == 0);
    CHECK(sigismember(&blocked, SIGPIPE) == 0);
    CHECK(sigismember(&pending, SIGPIPE) == 0);
  }

  TEST_CASE("permissions written for Moleculer nodes and an inbox are enough") {
    const Folder folder;
    const std::string config = folder.write(
        "server.conf",
        "authorization { users = [ { user: me, password: secret, permissions: { subscribe: [ "
        "MOL.EVENT.a, MOL.REQ.a, MOL.RES.a, MOL.PONG.a, MOL.DISCOVER, MOL.DISCOVER.a, MOL.INFO, MOL.INFO.a, "
        "MOL.PING, MOL.PING.a, \"_INBOX.>\" ] } } ] }\n");
    const NatsServer server({.arguments = {"-c", config}});
    NatsWorld world;
    const auto sink = std::make_shared<LinesSink>(world);
    NatsTransporter nats(world.loop, world.poller, world.random,
                         Logger(sink, "a", "transporter", LogLevel::kWarn),
                         {.url = server.url(), .user = "me", .password = "secret"});
    Transporter& transporter = nats;
    test::RecordingListener listener;
    listener.on_each_line = [&] { world.wake(); };
    bool is_ready = false;
    transporter.start({"a", ""}, listener, [&](Result<> outcome) {
      is_ready = outcome.ok();
      world.wake();
    });
    REQUIRE(world.await([&] { return is_ready; }));
    for (const PacketType type : {PacketType::kRequest, PacketType::kResponse, PacketType::kEvent,
                                  PacketType::kPing, PacketType::kPong, PacketType::kInfo}) {
      CHECK(transporter.send("a", type, "x").ok());
      const std::string line = std::string(to_string(type)) + " x";
      CHECK(world.await([&] { return listener.has(line); }));
    }
    // What is refused beyond that is told of, each time: heartbeats and goodbyes are not heard.
    for (const char* refused : {"\"MOL.HEARTBEAT\"", "\"MOL.DISCONNECT\""}) {
      CHECK(world.await([&] { return sink->text.find(refused) != std::string::npos; }));
    }
    CHECK(sink->text.find("MOL.*.a") == std::string::npos);
    CHECK(sink->text.find("secret") == std::string::npos);
  }

  TEST_CASE("a server that permits no inbox is an error that says what it must permit") {
    const Folder folder;
    const std::string config = folder.write("server.conf",
                                            "authorization { users = [ { user: me, password: secret, "
                                            "permissions: { subscribe: \"MOL.>\" } } ] }\n");
    const NatsServer server({.arguments = {"-c", config}});
    NatsWorld world;
    const std::string error = outcome_of(world, {.url = server.url(), .user = "me", .password = "secret"});
    CHECK(error.find("BrokerOptionsError") != std::string::npos);
    CHECK(error.find("_INBOX.>") != std::string::npos);
  }
}

}  // namespace
}  // namespace weft
