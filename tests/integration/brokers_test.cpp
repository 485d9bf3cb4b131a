#include <doctest/doctest.h>

#include "broker/broker.h"
#include "lib/uv/uv_runtime.h"
#include "tests/support/run_task.h"
#include "transporters/memory/memory_transporter.h"
#include "transporters/tcp/tcp_transporter.h"

namespace brokers_test {

struct AddParams {
  std::int64_t a = 0, b = 0;
};
WEFT_FIELDS(AddParams, a, b)

struct User {
  std::string name;
  std::vector<std::string> tags;
};
WEFT_FIELDS(User, name, tags)

inline constexpr weft::Action<AddParams, std::int64_t> kAdd{"math.add"};

class Math : public weft::Service {
 public:
  Math() : Service("math") {
    action("add", &Math::add);
    action("greet", &Math::greet);
    action("sum", [](weft::Context& c) {
      std::int64_t sum = 0;
      for (const auto& value : c.params.value()["list"].items()) sum += value.i64();
      return sum;
    });
    action("fail", [](weft::Context&) -> int {
      throw weft::ClientError("no such thing", 418, "TEAPOT", weft::Value{{"x", 1}});
    });
    action("slow", [](weft::Context& c) -> weft::Task<int> {
      co_await c.broker().sleep(std::chrono::milliseconds(300));
      co_return 1;
    });
  }
  std::int64_t add(weft::Context&, const AddParams& p) { return p.a + p.b; }
  weft::Task<User> greet(weft::Context& c, User u) {
    auto n = co_await c.call("math.add", {{"a", 1}, {"b", 2}});
    u.tags.push_back(u.name + std::to_string(n.i64()));
    c.meta()["greeted"] = true;
    co_return u;
  }
};

}  // namespace brokers_test

namespace weft {

using namespace std::chrono_literals;
using brokers_test::kAdd;
using brokers_test::Math;
using brokers_test::User;

namespace {

struct Mesh {
  explicit Mesh(std::string kind) : kind_(std::move(kind)) {}
  UvRuntime world;
  std::shared_ptr<MemoryBus> bus = std::make_shared<MemoryBus>();

  std::unique_ptr<Broker> make(std::string id, BrokerOptions options = {}) {
    options.node_id = std::move(id);
    options.log_level = LogLevel::kWarn;
    std::unique_ptr<Transporter> transporter;
    if (kind_ == "memory") {
      transporter = std::make_unique<MemoryTransporter>(world.loop(), bus);
    } else {
      TcpOptions tcp;
      tcp.udp_discovery = false;
      tcp.host = "127.0.0.1";
      tcp.use_hostname = false;
      if (port_ != 0) tcp.urls = Value("127.0.0.1:" + std::to_string(port_) + "/" + first_);
      auto made = std::make_unique<TcpTransporter>(world.loop(), world.services().network, Logger(), tcp);
      transporter_ = made.get();
      transporter = std::move(made);
    }
    const std::string name = options.node_id;
    auto broker = std::make_unique<Broker>(world.services(), std::move(options), std::move(transporter));
    last_ = name;
    return broker;
  }
  // Later nodes find this one by their static list.
  void is_seed() {
    if (kind_ == "memory") return;
    port_ = transporter_->listen_address().port;
    first_ = last_;
  }

 private:
  std::string kind_;
  std::uint16_t port_ = 0;
  std::string first_, last_;
  TcpTransporter* transporter_ = nullptr;
};

}  // namespace

TEST_SUITE("brokers") {
  TEST_CASE("two nodes find each other and call, over memory and over TCP") {
    for (const std::string kind : {"memory", "tcp"}) {
      CAPTURE(kind);
      Mesh mesh(kind);
      auto worker = mesh.make("worker");
      auto client = std::unique_ptr<Broker>();
      worker->add<Math>();
      test::run_task(mesh.world, [&]() -> Task<void> {
        co_await worker->start();
        mesh.is_seed();
        client = mesh.make("client");
        co_await client->start();
        co_await client->wait_for_services({"math"}, 5s);
        const Value sum = co_await client->call("math.add", {{"a", 1}, {"b", 2}});
        CHECK(sum.i64() == 3);
        const std::int64_t typed = co_await client->call(kAdd, {20, 22});
        CHECK(typed == 42);
        Value meta;
        User user{"bob", {"a"}};
        const User greeted = co_await client->call<User>("math.greet", user, {.response_meta = &meta});
        CHECK(greeted.tags.back() == "bob3");
        CHECK(meta["greeted"].boolean());
        auto failed = co_await client->try_call("math.fail");
        REQUIRE_FALSE(failed.ok());
        CHECK(failed.error().code() == 418);
        CHECK(failed.error().type() == "TEAPOT");
        CHECK(failed.error().data()["x"].i64() == 1);
        CHECK(failed.error().node_id() == "worker");
        auto missing = co_await client->try_call("math.nothing");
        CHECK(missing.error().error_class() == ErrorClass::kServiceNotFound);
        auto invalid = co_await client->try_call("math.add", {{"a", "x"}});
        CHECK(invalid.error().code() == 422);
        CHECK(invalid.error().data().size() == 2);
        auto late = co_await client->try_call("math.slow", {}, {.timeout = 50ms});
        CHECK(late.error().error_class() == ErrorClass::kRequestTimeout);
        auto pong = co_await client->ping("worker");
        CHECK(pong.has_value());
        co_await client->stop();
        co_await worker->stop();
      });
    }
  }
}

}  // namespace weft
