#include "lib/transport/subject.h"

#include <doctest/doctest.h>

#include <string>

using namespace weft;

TEST_SUITE("subject") {
  TEST_CASE("the prefix carries the namespace") {
    CHECK(subject_prefix("") == "MOL");
    CHECK(subject_prefix("dev") == "MOL-dev");
  }

  TEST_CASE("a name that would change the meaning of a subject is told apart") {
    for (const char* good : {"node-1", "host.domain-42", "$node.list", "v2.users.get", "käse", "a|b"}) {
      CAPTURE(good);
      CHECK(is_subject_name(good));
      CHECK(!subject_name_fault(good).has_value());
    }
    for (const char* bad :
         {"", "a b", "a\tb", "a\r\nPUB x 0", "*", "a.*", "a>", ".a", "a.", "a..b", ".", "a\x7f"}) {
      CAPTURE(bad);
      CHECK(!is_subject_name(bad));
      CHECK(subject_name_fault(bad).has_value());
    }
    CHECK(!is_subject_name(std::string_view("a\0b", 3)));
  }

  TEST_CASE("event patterns become the narrowest subscription of the bus that takes all they mean") {
    const struct {
      const char* pattern;
      const char* subscription;
    } rows[] = {
        {"user.created", "user.created"},
        {"$node.connected", "$node.connected"},
        {"user.*", "user.*"},
        {"*", "*"},
        {"user.*.done", "user.*.done"},
        {"**", ">"},
        {"order.**", "order.>"},
        {"order.**.done", "order.>"},
        {"*.**", "*.>"},
        {"a?c", ">"},
        {"user.?x.done", "user.>"},
        {"user.cre*", "user.>"},
        {"user.c*e", "user.*"},
        {"a*.b", "*.b"},
        {"*a", "*"},
        {"a**", ">"},
        {"x.a**b.c", "x.>"},
    };
    for (const auto& row : rows) {
      CAPTURE(row.pattern);
      CHECK(event_subscription(row.pattern) == row.subscription);
    }
  }

  TEST_CASE("a subscription takes whole tokens by `*` and the rest by `>`") {
    const struct {
      const char* subscription;
      const char* subject;
      bool matches;
    } rows[] = {
        {"a.b", "a.b", true},    {"a.b", "a.c", false},    {"a.b", "a", false},       {"a", "a.b", false},
        {"*", "a", true},        {"*", "a.b", false},      {"a.*", "a.b", true},      {"a.*", "a", false},
        {"a.*", "a.b.c", false}, {"a.*.c", "a.b.c", true}, {"a.*.c", "a.b.d", false}, {">", "a", true},
        {">", "a.b.c", true},    {"a.>", "a.b", true},     {"a.>", "a.b.c.d", true},  {"a.>", "a", false},
        {"a.>", "b.c", false},   {"*.>", "a.b", true},     {"*.>", "a", false},
    };
    for (const auto& row : rows) {
      CAPTURE(row.subscription);
      CAPTURE(row.subject);
      CHECK(subject_matches(row.subscription, row.subject) == row.matches);
    }
  }
}
