// Links that are cut without a word, between network namespaces: nothing but silence tells of it. Needs the
// right to make namespaces (root, or user namespaces); without it the tests are skipped and say so.

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/chaos/mesh.h"
#include "tests/support/nats_server.h"

namespace weft::chaos {

using namespace std::chrono_literals;

namespace {

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

// Puts this process into a network of its own, with a bridge that hosts are plugged into. False where that is
// not allowed.
bool enter_own_network() {
  static const bool entered = [] {
    const uid_t user = getuid();
    const gid_t group = getgid();
    if (::unshare(CLONE_NEWNET) != 0) {
      if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
      write_file("/proc/self/setgroups", "deny");
      write_file("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
      write_file("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
    }
    return run("ip link set lo up") && run("ip link add br0 type bridge") &&
           run("ip addr add 10.77.0.1/24 dev br0") && run("ip link set br0 up");
  }();
  if (!entered)
    MESSAGE("skipped: no network namespaces may be made here (they need root, or user namespaces)");
  return entered;
}

// A worker on a host of its own, with a cable that can be pulled.
class RemoteWorker {
 public:
  RemoteWorker(const Mesh& mesh, int number, WorkerProcess::Environment more = {})
      : cable_("port" + std::to_string(number)), process_(launch(mesh, number, std::move(more))) {
    const std::string pid = std::to_string(process_.pid());
    const std::string inside = "nsenter -t " + pid + " -n ";
    while (namespace_of("self") == namespace_of(pid)) std::this_thread::yield();
    REQUIRE(run("ip link add " + cable_ + " type veth peer name eth0 netns " + pid));
    REQUIRE(run(inside + "ip addr add 10.77.0." + std::to_string(10 + number) + "/24 dev eth0"));
    REQUIRE(run(inside + "ip link set lo up"));
    REQUIRE(run(inside + "ip link set eth0 up"));
    REQUIRE(run("ip link set " + cable_ + " up"));
    plug_in();
    write_file(gate_, "go\n");
    ::unlink(gate_.c_str());
  }

  // Both sides keep their link, and packets vanish.
  void pull_out() const { REQUIRE(run("ip link set " + cable_ + " nomaster")); }
  void plug_in() const { REQUIRE(run("ip link set " + cable_ + " master br0")); }
  [[nodiscard]] WorkerProcess& process() { return process_; }

 private:
  static std::string namespace_of(const std::string& pid) {
    char target[64] = "";
    const ssize_t size = ::readlink(("/proc/" + pid + "/ns/net").c_str(), target, sizeof target - 1);
    return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : "gone";
  }

  WorkerProcess launch(const Mesh& mesh, int number, WorkerProcess::Environment more) {
    std::string folder = std::filesystem::temp_directory_path() / "weft-chaos-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    gate_ = folder + "/gate";
    REQUIRE(::mkfifo(gate_.c_str(), 0600) == 0);
    WorkerProcess::Environment all = mesh.environment("w" + std::to_string(number));
    more.emplace_back("TCP_HOST", "10.77.0." + std::to_string(10 + number));
    more.emplace_back("CHAOS_GATE", gate_);
    all.insert(all.end(), more.begin(), more.end());
    return WorkerProcess({"/usr/bin/env", "unshare", "-n", "/bin/sh", "-c",
                          R"(read go <"$CHAOS_GATE"; rmdir "${CHAOS_GATE%/*}" 2>/dev/null; exec "$0" "$@")",
                          required("TEST_RUNNER"), required("TEST_MODULE")},
                         all);
  }

  std::string cable_;
  std::string gate_;
  WorkerProcess process_;
};

Mesh::Options network(const std::string& transporter) {
  return {.transporter = transporter, .tcp_host = "10.77.0.1", .adapt = nullptr};
}

}  // namespace

TEST_SUITE("link") {
  TEST_CASE("a TCP link that drops every packet is lost in 3.5 s, busy or idle: calls that waited are told") {
    if (!enter_own_network()) return;
    Mesh mesh(network("TCP"));
    RemoteWorker w1(mesh, 1), w2(mesh, 2), w3(mesh, 3);
    mesh.run([&](Broker& broker) -> Task<void> {
      co_await workers_are(broker, 3);
      for (const bool busy : {false, true}) {
        CAPTURE(busy);
        std::unique_ptr<Load> load;
        if (busy) {
          load = std::make_unique<Load>(broker, LoadOptions{.rate = 600, .retries = 1});
          co_await load->more(600);
        } else {
          for (int i = 0; i < 9; ++i) (void)co_await broker.call("chaos.work", {{"ms", 0}});
        }
        auto waiting = broker.try_call("chaos.work", {{"ms", 60000}}, {.node = "w3"});
        co_await broker.call("chaos.work", {{"ms", 0}}, {.node = "w3"});  // It has arrived.
        const Instant cut_at = broker.now();
        w3.pull_out();
        const auto answer = co_await std::move(waiting);
        const Duration noticed = broker.now() - cut_at;
        MESSAGE(std::string(busy ? "busy" : "idle"), ": lost after ", to_ms(noticed), " ms");
        REQUIRE_FALSE(answer.ok());
        CHECK(answer.error().error_class() == ErrorClass::kRequestRejected);
        CHECK(noticed <= 3500ms);
        co_await node_is(broker, "w3", false);
        CHECK(broker.now() - cut_at <= 3500ms);
        if (busy) {
          co_await load->more(300);
          (void)co_await load->finish();
          for (const Load::Failure& failure : load->failures()) FAIL_CHECK(failure.error.to_string());
        }
        const Instant healed_at = broker.now();
        w3.plug_in();
        co_await workers_are(broker, 3);
        MESSAGE("back after ", to_ms(broker.now() - healed_at), " ms");
        CHECK(broker.now() - healed_at <= 12s);
      }
    });
  }

  TEST_CASE("with the probe a cut link is out of rotation in 2.5 s, over TCP and NATS") {
    if (!enter_own_network()) return;
    const auto check = [](const std::string& transporter) {
      Mesh mesh(network(transporter));
      RemoteWorker w1(mesh, 1), w2(mesh, 2), w3(mesh, 3);
      mesh.run([&](Broker& broker) -> Task<void> {
        co_await workers_are(broker, 3);
        Sightings& seen = mesh.sightings();
        for (const char* by : {"w1", "w2"}) {
          for (const char* node : {"w1", "w2", "w3"}) {
            if (std::string_view(by) != node) co_await node_sees(broker, by, node);
          }
        }
        Load load(broker, {.rate = 600, .retries = 1});
        co_await load.more(600);
        seen.clear();
        const Instant cut_at = broker.now();
        w3.pull_out();
        for (const char* by : {"client", "w1", "w2"}) co_await seen.await(broker, by, "w3", false);
        const Duration gone = broker.now() - cut_at;
        MESSAGE(transporter, ": out of rotation everywhere after ", to_ms(gone), " ms");
        CHECK(gone <= 2500ms);
        const Instant healed_at = broker.now();
        w3.plug_in();
        for (const char* by : {"client", "w1", "w2"}) co_await seen.await(broker, by, "w3", true);
        MESSAGE(transporter, ": back everywhere after ", to_ms(broker.now() - healed_at), " ms");
        co_await load.more(300);
        (void)co_await load.finish();
        for (const Load::Failure& failure : load.failures()) FAIL_CHECK(failure.error.to_string());
      });
    };
    SUBCASE("TCP") {
      check("TCP");
    }
    SUBCASE("NATS") {
      test::NatsServer server({.arguments = {"-a", "0.0.0.0"}, .monitor = false});
      check("nats://10.77.0.1:" + std::to_string(server.port()));
    }
  }
}

}  // namespace weft::chaos
