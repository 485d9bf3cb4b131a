#include "transporters/nats/nats_subjects.h"

#include <doctest/doctest.h>

#include <string>

namespace weft {
namespace {

std::string text(const char* subject) {
  return subject == nullptr ? "(none)" : subject;
}

TEST_SUITE("nats subjects") {
  TEST_CASE("subjects are what Moleculer nodes use") {
    NatsSubjects plain("");
    CHECK(text(plain.targeted(PacketType::kRequest, "node-1")) == "MOL.REQ.node-1");
    CHECK(text(plain.targeted(PacketType::kResponse, "node-1")) == "MOL.RES.node-1");
    CHECK(text(plain.targeted(PacketType::kRequest, "node-1")) == "MOL.REQ.node-1");
    CHECK(text(plain.broadcast(PacketType::kDisconnect)) == "MOL.DISCONNECT");

    NatsSubjects dev("dev");
    CHECK(text(dev.targeted(PacketType::kInfo, "a.b-7")) == "MOL-dev.INFO.a.b-7");
    CHECK(text(dev.broadcast(PacketType::kHeartbeat)) == "MOL-dev.HEARTBEAT");
    CHECK(text(dev.balanced_request("v2.users.get")) == "MOL-dev.REQB.v2.users.get");
    CHECK(text(dev.balanced_event("mail", "user.created")) == "MOL-dev.EVENTB.mail.user.created");
  }

  TEST_CASE("a name that would break a subject gets none") {
    NatsSubjects subjects("");
    for (const char* bad : {"", "a b", "a\r\nSUB > 1", "*", ">", "a..b", ".", "a."}) {
      CAPTURE(bad);
      CHECK(subjects.targeted(PacketType::kRequest, bad) == nullptr);
      CHECK(subjects.balanced_request(bad) == nullptr);
      CHECK(subjects.balanced_event(bad, "e") == nullptr);
      CHECK(subjects.balanced_event("g", bad) == nullptr);
      CHECK(subjects.balanced_event_subscription(bad, "e").empty());
    }
    CHECK(subjects.balanced_event_subscription("g", "a b").empty());
    CHECK(subjects.balanced_event_subscription("g", "").empty());
    CHECK(subjects.balanced_event_subscription("g", "a..b").empty());
  }

  TEST_CASE("more node names than are remembered still get their subjects") {
    NatsSubjects subjects("");
    for (int i = 0; i < 10000; ++i) {
      const std::string node = "n" + std::to_string(i);
      CHECK(subjects.targeted(PacketType::kRequest, node) == "MOL.REQ." + node);
    }
  }

  TEST_CASE("balanced patterns become subscriptions") {
    NatsSubjects subjects("dev");
    CHECK(subjects.balanced_event_subscription("mail", "user.*.done") == "MOL-dev.EVENTB.mail.user.*.done");
    CHECK(subjects.balanced_event_subscription("users", "$node.connected") ==
          "MOL-dev.EVENTB.users.$node.connected");
    CHECK(subjects.balanced_event_subscription("mail", "**") == "MOL-dev.EVENTB.mail.>");
    CHECK(subjects.balanced_event_subscription("mail", "a?c") ==
          "MOL-dev.EVENTB.mail.>");  // `?` may be a dot.
  }

  TEST_CASE("an inbox subject says again what it was made of") {
    NatsInbox inbox("token");
    CHECK(inbox.subscription() == "_INBOX.token.>");
    {
      const std::string subject = text(inbox.reply("host.local-1", "id-7"));
      CHECK(subject == "_INBOX.token.r.host.local-1.id-7");
      const auto parsed = inbox.parse(subject);
      REQUIRE(parsed.has_value());
      CHECK(parsed->kind == 'r');
      CHECK(parsed->node == "host.local-1");
      CHECK(parsed->correlation == "id-7");
    }
    {
      const std::string subject = text(inbox.probe("host.local-1"));
      const auto parsed = inbox.parse(subject);
      REQUIRE(parsed.has_value());
      CHECK(parsed->kind == 'p');
      CHECK(parsed->node == "host.local-1");
    }
    {
      const auto parsed = inbox.parse(text(inbox.echo(42)));
      REQUIRE(parsed.has_value());
      CHECK(parsed->kind == 'e');
      CHECK(parsed->number == 42);
    }
    for (const char* bad : {"a.b", "a b", "*", ""}) CHECK(inbox.reply("n", bad) == nullptr);
  }

  TEST_CASE("a foreign inbox subject is none of ours") {
    const NatsInbox inbox("token");
    for (const char* foreign :
         {"", "_INBOX.other.r.n.1", "_INBOX.token.", "_INBOX.token.r", "_INBOX.token.r.n", "_INBOX.token.x.n",
          "_INBOX.token.e.x", "_INBOX.token.e.", "_INBOX.token.rn.1"}) {
      CAPTURE(foreign);
      CHECK(!inbox.parse(foreign).has_value());
    }
  }
}

}  // namespace
}  // namespace weft
