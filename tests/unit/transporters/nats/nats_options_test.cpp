#include "transporters/nats/nats_options.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace weft {
namespace {

using Urls = std::vector<std::string>;

TEST_SUITE("nats options") {
  TEST_CASE("a URL list is cut at its commas, and a missing scheme is added") {
    const struct {
      const char* url;
      Urls servers;
    } rows[] = {
        {"nats://127.0.0.1:4222", {"nats://127.0.0.1:4222"}},
        {"localhost", {"nats://localhost"}},
        {"NATS://Host", {"nats://Host"}},
        {"nats://a:1, tls://b:2 ,c", {"nats://a:1", "tls://b:2", "nats://c"}},
        {"nats://user:pass@host:4222/", {"nats://user:pass@host:4222"}},
        {"nats://[::1]:4222", {"nats://[::1]:4222"}},
        {"nats://[::1]", {"nats://[::1]"}},
    };
    for (const auto& row : rows) {
      CAPTURE(row.url);
      const auto checked = check_nats_options({.url = row.url});
      REQUIRE(checked.ok());
      CHECK(*checked == row.servers);
    }
    CHECK(check_nats_options({}).ok());
  }

  TEST_CASE("what cannot be an option's value is an error that names the option") {
    const struct {
      const char* named;
      NatsOptions options;
    } rows[] = {
        {".url", {.url = ""}},
        {".url", {.url = "nats://"}},
        {".url", {.url = "nats://a,,b"}},
        {".url", {.url = "http://a:4222"}},
        {".url", {.url = "nats://a:0"}},
        {".url", {.url = "nats://a:65536"}},
        {".url", {.url = "nats://a:x"}},
        {".url", {.url = "nats://a b"}},
        {".url", {.url = "nats://a/b"}},
        {".credentials_file", {.credentials_file = "/nowhere/user.creds"}},
        {".nkey_seed_file", {.nkey = "U", .nkey_seed_file = "/nowhere/seed"}},
        {".nkey", {.nkey = "U"}},
        {".tls_ca_file", {.tls_ca_file = "/nowhere/ca.pem"}},
        {".tls_cert_file", {.tls_cert_file = "/dev/null"}},
        {".tls_key_file", {.tls_key_file = "/dev/null"}},
        {".user", {.user = "me"}},
        {".password", {.password = "secret"}},
        {".user", {.user = "me", .password = "secret", .token = "t"}},
        {".connect_timeout", {.connect_timeout = Duration::zero()}},
        {".reconnect_wait_max", {.reconnect_wait_max = Duration::zero()}},
        {".ping_interval", {.ping_interval = Duration::zero()}},
        {".queue_bytes_max", {.queue_bytes_max = 0}},
    };
    for (const auto& row : rows) {
      CAPTURE(row.named);
      const auto checked = check_nats_options(row.options);
      REQUIRE(!checked.ok());
      CAPTURE(checked.error().message());
      CHECK(checked.error().error_class() == ErrorClass::kBrokerOptions);
      CHECK(checked.error().message().find(row.named) != std::string::npos);
      CHECK(checked.error().message().find("secret") == std::string::npos);
    }
    const auto leaking = check_nats_options({.url = "nats://me:secret@host:x"});
    REQUIRE(!leaking.ok());
    CHECK(leaking.error().message().find("secret") == std::string::npos);
  }
}

}  // namespace
}  // namespace weft
