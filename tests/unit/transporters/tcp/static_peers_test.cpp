#include "transporters/tcp/static_peers.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace weft {
namespace {

// "node=host:port …", then the own port and the number of warnings.
std::string read(const Value& urls, const std::string& file = {}) {
  const auto result = read_static_peers(urls, "me", [&](const std::string& path) -> Result<std::string> {
    CHECK(path == "/etc/peers");
    return file;
  });
  if (!result.ok()) return "error";
  std::string text;
  for (const auto& peer : result->peers) text += peer.node + "=" + peer.address.to_string() + " ";
  if (result->own_port) text += "own=" + std::to_string(*result->own_port) + " ";
  if (!result->warnings.empty()) text += "warnings=" + std::to_string(result->warnings.size()) + " ";
  return text;
}

TEST_SUITE("tcp static peers") {
  TEST_CASE("a text holds entries with and without the scheme, separated by commas") {
    CHECK(read("tcp://host-1:1234/n1,host-2:99/n2, tcp://h:1/n3") == "n1=host-1:1234 n2=host-2:99 n3=h:1 ");
    CHECK(read("10.0.0.1:5/n1,") == "n1=10.0.0.1:5 ");
    CHECK(read("") == "");
    CHECK(read(Value()) == "");
  }

  TEST_CASE("a list holds such texts") {
    CHECK(read(arr("tcp://a:1/n1", "b:2/n2")) == "n1=a:1 n2=b:2 ");
    CHECK(read(arr("a:1/n1", 5)) == "n1=a:1 warnings=1 ");
    CHECK(read(Value::array()) == "");
  }

  TEST_CASE("an object maps nodes to addresses") {
    CHECK(read(Value{{"n1", "a:1"}, {"n2", "tcp://b:2"}}) == "n1=a:1 n2=b:2 ");
    CHECK(read(Value{{"n1", "a"}, {"n2", 7}, {"", "c:3"}, {"n/4", "d:4"}}) == "n/4=d:4 warnings=3 ");
  }

  TEST_CASE("the port is what follows the last colon, so IPv6 hosts work with and without brackets") {
    CHECK(read("tcp://::1:4000/n1,[fe80::2]:5000/n2") == "n1=[::1]:4000 n2=[fe80::2]:5000 ");
  }

  TEST_CASE("our own entry gives our port and is no peer") {
    CHECK(read("a:1/n1,b:2/me") == "n1=a:1 own=2 ");
    CHECK(read(Value{{"me", "x:77"}}) == "own=77 ");
  }

  TEST_CASE("an entry without node, host or port is left out with a warning") {
    for (const char* entry : {"a:1", "a:1/", "a/n1", "a:/n1", "a:x/n1", "a:0/n1", "a:70000/n1", ":5/n1",
                              "/n1", "a:1/n1/x", "tcp://", "http://a:1/n1"}) {
      CAPTURE(entry);
      CHECK(read(entry) == "warnings=1 ");
      CHECK(read(arr(entry, "b:2/n2")) == "n2=b:2 warnings=1 ");
    }
  }

  TEST_CASE("a file holds a JSON list, a JSON object, or one entry a line") {
    const Value url("file:///etc/peers");
    CHECK(read(url, "[\"tcp://a:1/n1\",\n \"b:2/n2\"]\n") == "n1=a:1 n2=b:2 ");
    CHECK(read(url, " {\"n1\": \"a:1\", \"me\": \"b:2\"}") == "n1=a:1 own=2 ");
    CHECK(read(url, "a:1/n1\r\n\n  tcp://b:2/n2\nbad\n") == "n1=a:1 n2=b:2 warnings=1 ");
    CHECK(read(url, "[::1]:4/n1\n[::1]:5/n2") == "n1=[::1]:4 n2=[::1]:5 ");
    CHECK(read(url, "") == "");
    CHECK(read(url, "{\"n1\": ") == "error");
    CHECK(read(url, "[\"a:1/n1\" \"b\"]") == "error");
  }

  TEST_CASE("a file is read whole, and one that is not there is an error that names it") {
    char path[] = "/tmp/weft-peers-XXXXXX";
    const int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    const std::string text(10'000, 'x');
    REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(fd);
    const auto content = read_peer_file(path);
    REQUIRE(content.ok());
    CHECK(*content == text);
    unlink(path);
    const auto missing = read_peer_file(path);
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().message().find(path) != std::string::npos);
    CHECK_FALSE(read_peer_file("/").ok());
  }
}

}  // namespace
}  // namespace weft
