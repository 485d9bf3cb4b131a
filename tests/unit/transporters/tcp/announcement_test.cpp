#include "transporters/tcp/announcement.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/vectors.h"

namespace weft {
namespace {

TEST_SUITE("tcp announcement") {
  TEST_CASE("only well-formed datagrams of our namespace and another node count") {
    const std::string long_name(kAnnouncedIdBytesMax, 'n');
    const std::string rejected[] = {
        "dev|n2|6001",
        "a|b",
        "prod||6001",
        "prod|n2|abc",
        "prod|n2|70000",
        "prod|n2|6001|x",
        "prod|n2|0",
        "prod|n2|-1",
        "prod|n2|65536",
        "prod|n2| 6001",
        "prod|n2|6001 ",
        "prod|n2|6001\n",
        "prod|n2|6001.0",
        "prod|n2|0x10",
        "prod|n2|",
        "prod|me|6001",
        "|n2|6001",
        "",
        "|",
        "||",
        "|||",
        "PROD|n2|6001",
        "prod|n\x01|6001",
        "prod|n\xff|6001",
        "prod|n2|+6001",
        std::string("prod|n\0|6001", 12),
        "prod|" + long_name + "n|6001",
    };
    for (const std::string& datagram : rejected) {
      CAPTURE(datagram);
      CHECK_FALSE(parse_announcement(datagram, "prod", "me").has_value());
    }
    const auto heard = parse_announcement("prod|n2|6001", "prod", "me");
    REQUIRE(heard.has_value());
    CHECK(heard->node == "n2");
    CHECK(heard->port == 6001);
    CHECK(parse_announcement("prod|" + long_name + "|1", "prod", "me").has_value());
    CHECK(parse_announcement("prod|n\xc3\xbc|65535", "prod", "me")->port == 65535);
  }

  TEST_CASE("an empty namespace is a namespace") {
    CHECK(parse_announcement("|n2|1", "", "me")->node == "n2");
    CHECK_FALSE(parse_announcement("dev|n2|1", "", "me").has_value());
  }

  TEST_CASE("recorded datagrams are read, and written the same") {
    const Buffer plain = test::load_vector("udp/discovery.bin");
    const auto heard = parse_announcement(plain.view(), "", "me");
    REQUIRE(heard.has_value());
    CHECK(make_announcement("", heard->node, heard->port) == plain.view());
    const Buffer with_namespace = test::load_vector("udp/discovery-ns-dev.bin");
    const auto other = parse_announcement(with_namespace.view(), "dev", "me");
    REQUIRE(other.has_value());
    CHECK(make_announcement("dev", other->node, other->port) == with_namespace.view());
    CHECK_FALSE(parse_announcement(with_namespace.view(), "", "me").has_value());
  }
}

}  // namespace
}  // namespace weft
