#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lib/transport/subject.h"
#include "tests/support/nats_server.h"
#include "tests/support/nats_world.h"

namespace weft {
namespace {

using test::NatsNode;
using test::NatsServer;
using test::NatsWorld;
using Lines = std::vector<std::string>;

// The subscriptions of the connection named `node`, as the server lists them: "subject [queue name]", sorted,
// without the inbox.
Lines subscriptions_of(const NatsServer& server, const std::string& node) {
  const std::string state = server.ask_monitor("/connz?subs=detail");
  Lines found;
  const std::size_t name = state.find("\"name\": \"" + node + "\"");
  if (name == std::string::npos) return found;
  const std::size_t list = state.find("\"subscriptions_list_detail\"", name);
  const std::size_t end = state.find(']', list);
  const auto value_of = [&](const std::string& key, std::size_t from, std::size_t to) {
    const std::string begin = "\"" + key + "\": \"";
    const std::size_t at = state.find(begin, from);
    if (at == std::string::npos || at >= to) return std::string();
    return state.substr(at + begin.size(), state.find('"', at + begin.size()) - at - begin.size());
  };
  for (std::size_t at = list; (at = state.find('{', at)) < end;) {
    const std::size_t close = state.find('}', at);
    std::string subject = value_of("subject", at, close);
    const std::string queue = value_of("qgroup", at, close);
    if (const std::size_t escaped = subject.find("\\u003e"); escaped != std::string::npos) {
      subject.replace(escaped, 6, ">");
    }
    if (!subject.starts_with("_INBOX.")) {
      found.push_back(queue.empty() ? subject : subject + " [queue " + queue + "]");
    }
    at = close;
  }
  std::sort(found.begin(), found.end());
  return found;
}

// What the node subscribes beside actions and events. A Moleculer node has one for each of the twelve
// subjects instead; one for all that is targeted keeps an event and the request behind it in order.
Lines plain_of(const std::string& prefix, const std::string& node) {
  Lines lines = {prefix + ".*." + node};
  for (const char* type : {"DISCONNECT", "DISCOVER", "HEARTBEAT", "INFO", "PING"}) {
    lines.push_back(prefix + "." + type);
  }
  return lines;
}

TEST_SUITE("nats balanced mode") {
  TEST_CASE("the subscriptions are those of a Moleculer node, but for what it cannot express") {
    const NatsServer server({.monitor = true});
    NatsWorld world;
    NatsNode first(world, "node-1", {.url = server.url()}, "dev");
    NatsNode second(world, "node-2", {.url = server.url()}, "dev");
    REQUIRE((first.await_ready() && second.await_ready()));

    const std::string first_actions[] = {"math.add", "v2.users.get", "math.add"};
    const BalancedEvent first_events[] = {{"billing", "user.created"},
                                          {"users", "$node.connected"},
                                          {"users", "order.**"},
                                          {"users", "user.*"}};
    first->subscribe_balanced(first_actions, first_events);
    const std::string second_actions[] = {"mail.send"};
    const BalancedEvent second_events[] = {{"mail", "**"},
                                           {"mail", "a?c"},
                                           {"mail", "user.*.done"},
                                           {"mail", "user.**"},
                                           {"mail", "user.created"}};
    second->subscribe_balanced(second_actions, second_events);
    // Behind these all subscriptions stand.
    CHECK(first->send("node-1", PacketType::kPing, "x").ok());
    CHECK(second->send("node-2", PacketType::kPing, "x").ok());
    CHECK((first.await("PING x") && second.await("PING x")));

    Lines wanted = plain_of("MOL-dev", "node-1");
    for (const char* line :
         {"MOL-dev.EVENTB.billing.user.created [queue billing]",
          "MOL-dev.EVENTB.users.$node.connected [queue users]", "MOL-dev.EVENTB.users.order.> [queue users]",
          "MOL-dev.EVENTB.users.user.* [queue users]", "MOL-dev.REQB.math.add [queue math.add]",
          "MOL-dev.REQB.v2.users.get [queue v2.users.get]"}) {
      wanted.emplace_back(line);
    }
    std::sort(wanted.begin(), wanted.end());
    CHECK((subscriptions_of(server, "node-1") == wanted));
    for (const char* type : {"DISCOVER", "EVENT", "INFO", "PING", "PONG", "REQ", "RES"}) {
      CHECK(
          subject_matches(plain_of("MOL-dev", "node-1").front(), std::string("MOL-dev.") + type + ".node-1"));
    }

    wanted = plain_of("MOL-dev", "node-2");
    for (const char* line :
         {"MOL-dev.EVENTB.mail.> [queue mail]",  // And for a?c; JS: mail.a?c, which no event reaches.
          "MOL-dev.EVENTB.mail.user.*.done [queue mail]", "MOL-dev.EVENTB.mail.user.> [queue mail]",
          "MOL-dev.EVENTB.mail.user.created [queue mail]", "MOL-dev.REQB.mail.send [queue mail.send]"}) {
      wanted.emplace_back(line);
    }
    std::sort(wanted.begin(), wanted.end());
    CHECK((subscriptions_of(server, "node-2") == wanted));

    // A new list ends what it lacks and leaves the rest alone.
    second->subscribe_balanced({}, std::span(second_events).first(1));
    CHECK(second->send("node-2", PacketType::kPing, "y").ok());
    CHECK(second.await("PING y"));
    wanted = plain_of("MOL-dev", "node-2");
    wanted.emplace_back("MOL-dev.EVENTB.mail.> [queue mail]");
    std::sort(wanted.begin(), wanted.end());
    CHECK((subscriptions_of(server, "node-2") == wanted));
  }

  TEST_CASE("each request and event reaches one node of its group") {
    constexpr int kMessages = 300;
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    NatsNode c(world, "c", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready() && c.await_ready()));
    const std::string actions[] = {"math.add"};
    const BalancedEvent events[] = {{"mail", "user.*"}, {"mail", "user.created"}, {"log", "**"}};
    for (NatsNode* node : {&b, &c}) {
      (*node)->subscribe_balanced(actions, events);
      CHECK((*node)->send(node == &b ? "b" : "c", PacketType::kPing, "x").ok());
      CHECK(node->await("PING x"));
      node->listener.lines.clear();
    }
    for (int i = 0; i < kMessages; ++i) {
      const std::string number = std::to_string(i);
      CHECK(a->publish_balanced_request("math.add", number).ok());
      CHECK(a->publish_balanced_event("mail", "user.created", "m" + number).ok());
      CHECK(a->publish_balanced_event("log", "user.created", "l" + number).ok());
    }
    CHECK(a->publish_balanced_request("nobody.there", "x").ok());
    CHECK(a->publish_balanced_event("nobody", "user.created", "x").ok());
    CHECK(world.await([&] { return b.listener.lines.size() + c.listener.lines.size() == 3 * kMessages; }));
    std::map<std::string, int> seen;
    for (const NatsNode* node : {&b, &c}) {
      CHECK(node->listener.lines.size() > kMessages / 2);
      for (const std::string& line : node->listener.lines) ++seen[line];
    }
    CHECK(seen.size() == 3 * kMessages);
  }

  TEST_CASE("a pattern that NATS cannot express still receives its events") {
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready()));
    const BalancedEvent events[] = {{"g", "a?c"}, {"h", "user.cre*"}, {"i", "x**"}};
    b->subscribe_balanced({}, events);
    CHECK(b->send("b", PacketType::kPing, "x").ok());
    CHECK(b.await("PING x"));
    CHECK(a->publish_balanced_event("g", "abc", "1").ok());
    CHECK(a->publish_balanced_event("h", "user.created", "2").ok());
    CHECK(a->publish_balanced_event("i", "xy.z", "3").ok());
    CHECK((b.await("EVENT 1") && b.await("EVENT 2") && b.await("EVENT 3")));
  }

  TEST_CASE("nothing is lost while the list changes and changes again") {
    constexpr int kMessages = 2000;
    const NatsServer server;
    NatsWorld world;
    NatsNode a(world, "a", {.url = server.url()}), b(world, "b", {.url = server.url()});
    NatsNode c(world, "c", {.url = server.url()});
    REQUIRE((a.await_ready() && b.await_ready() && c.await_ready()));
    const std::string kept[] = {"kept"};
    const std::string both[] = {"kept", "other"};
    for (NatsNode* node : {&b, &c}) {
      (*node)->subscribe_balanced(both, {});
      CHECK((*node)->send(node == &b ? "b" : "c", PacketType::kPing, "x").ok());
      CHECK(node->await("PING x"));
      node->listener.lines.clear();
    }
    // c always takes "other"; b comes and goes, from inside upcalls too.
    int changes = 0;
    b.listener.on_each_frame = [&](const FrameView&) {
      b->subscribe_balanced(++changes % 2 == 0 ? std::span<const std::string>(both) : kept, {});
    };
    for (int i = 0; i < kMessages; ++i) {
      CHECK(a->publish_balanced_request("kept", "k" + std::to_string(i)).ok());
      CHECK(a->publish_balanced_request("other", "o" + std::to_string(i)).ok());
      if (i % 50 == 0) world.turn();
    }
    CHECK(world.await([&] { return b.listener.lines.size() + c.listener.lines.size() == 2 * kMessages; }));
    CHECK(changes > 100);
  }

  TEST_CASE("names that cannot be subscribed are left out, and the rest works") {
    const NatsServer server;
    NatsWorld world;
    NatsNode b(world, "b", {.url = server.url()});
    REQUIRE(b.await_ready());
    const std::string actions[] = {"has blank", "good.one", ""};
    const BalancedEvent events[] = {{"g g", "x"}, {"g", "x y"}, {"g", "fine"}, {"", "x"}};
    b->subscribe_balanced(actions, events);
    CHECK(b->publish_balanced_request("good.one", "1").ok());
    CHECK(b->publish_balanced_event("g", "fine", "2").ok());
    CHECK((b.await("REQ 1") && b.await("EVENT 2")));
  }
}

}  // namespace
}  // namespace weft
