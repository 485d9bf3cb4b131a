#include "transporters/factory.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/uv/uv_runtime.h"

namespace weft {
namespace {

struct Fixture {
  UvRuntime runtime;
  MemoryBuses buses;

  [[nodiscard]] Result<std::unique_ptr<Transporter>> make(const std::string& url) {
    return make_transporter({.url = url}, runtime.services(), Logger(), &buses);
  }
};

TEST_SUITE("transporter factory") {
  TEST_CASE("a name in any case, or a URL, selects the transporter") {
    Fixture fixture;
    const struct {
      const char* url;
      const char* name;
    } rows[] = {
      {"TCP", "TCP"},
      {"tcp", "TCP"},
      {"tcp://127.0.0.1:4001/a,127.0.0.1:4002/b", "TCP"},
      {"Memory", "Memory"},
      {"MEMORY", "Memory"},
      {"memory://bus-1", "Memory"},
#if WEFT_HAS_NATS
      {"NATS", "NATS"},
      {"nats", "NATS"},
      {"nats://127.0.0.1:4222", "NATS"},
      {"NATS://127.0.0.1,tls://127.0.0.1:4223", "NATS"},
      {"tls://127.0.0.1:4222", "NATS"},
#endif
    };
    for (const auto& row : rows) {
      CAPTURE(row.url);
      auto made = fixture.make(row.url);
      REQUIRE(made.ok());
      REQUIRE(*made != nullptr);
      CHECK((*made)->traits().name == row.name);
    }
    auto none = fixture.make("");
    REQUIRE(none.ok());
    CHECK(*none == nullptr);
  }

  TEST_CASE("what is unknown is an error that lists what there is") {
    Fixture fixture;
    for (const char* url : {"redis://127.0.0.1", "STAN", "tcpx", "nats:/x", "://"}) {
      CAPTURE(url);
      const auto made = fixture.make(url);
      REQUIRE(!made.ok());
      CHECK(made.error().error_class() == ErrorClass::kBrokerOptions);
      for (const std::string_view name : built_in_transporters()) {
        CHECK(made.error().message().find(name) != std::string::npos);
      }
    }
  }

  TEST_CASE(
      "what a build lacks is an error that says how to get it, and a bad URL one that says what it is") {
    Fixture fixture;
#if WEFT_HAS_NATS
    const auto made = fixture.make("nats://host:port");
    REQUIRE(!made.ok());
    CHECK(made.error().message().find("host:port") != std::string::npos);
#else
    const auto made = fixture.make("nats://127.0.0.1:4222");
    REQUIRE(!made.ok());
    CHECK(made.error().message().find("libnats-dev") != std::string::npos);
#endif
    CHECK(made.error().error_class() == ErrorClass::kBrokerOptions);
  }

  TEST_CASE("a memory transporter needs buses to meet in") {
    Fixture fixture;
    const auto made = make_transporter({.url = "Memory"}, fixture.runtime.services(), Logger(), nullptr);
    REQUIRE(!made.ok());
    CHECK(made.error().error_class() == ErrorClass::kBrokerOptions);
  }
}

}  // namespace
}  // namespace weft
