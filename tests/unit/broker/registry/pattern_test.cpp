#include "broker/registry/pattern.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/vectors.h"

using namespace weft;

namespace {

// Every way to read a pattern as the rules say, by plain recursion: slow and obviously right.
bool matches_by_recursion(std::string_view text, std::string_view pattern, bool any_dot) {
  if (pattern.empty()) return text.empty();
  if (pattern.starts_with("**")) {
    return matches_by_recursion(text, pattern.substr(2), any_dot) ||
           (!text.empty() && matches_by_recursion(text.substr(1), pattern, any_dot));
  }
  if (pattern[0] == '*') {
    return matches_by_recursion(text, pattern.substr(1), any_dot) ||
           (!text.empty() && text[0] != '.' && matches_by_recursion(text.substr(1), pattern, any_dot));
  }
  if (text.empty()) return false;
  const bool takes = pattern[0] == '?' || (any_dot && pattern[0] == '.') || pattern[0] == text[0];
  return takes && matches_by_recursion(text.substr(1), pattern.substr(1), any_dot);
}

// All words up to `length_max` over `alphabet`.
std::vector<std::string> words(std::string_view alphabet, std::size_t length_max) {
  std::vector<std::string> all{""};
  for (std::size_t from = 0, length = 0; length < length_max; ++length) {
    const std::size_t to = all.size();
    for (; from < to; ++from) {
      for (const char letter : alphabet) all.push_back(all[from] + letter);
    }
  }
  return all;
}

// Whether the matcher goes by its general rules rather than by a prefix.
bool is_general(std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  return pattern.find('?') != std::string_view::npos ||
         (star != std::string_view::npos && pattern.substr(star) != "*" && pattern.substr(star) != "**");
}

}  // namespace

TEST_SUITE("event pattern") {
  TEST_CASE("the compatible matcher gives what was recorded from Moleculer") {
    const Value recording = test::load_json_vector("event-match.json");
    REQUIRE(recording["patterns"].size() == 20);
    for (const Value& row : recording["patterns"].items()) {
      const auto fitting = row["matches"].items();
      for (const Value& text : recording["texts"].items()) {
        CAPTURE(row["pattern"].str());
        CAPTURE(text.str());
        const bool recorded = std::find(fitting.begin(), fitting.end(), text) != fitting.end();
        CHECK(matches_compatible(text.str(), row["pattern"].str()) == recorded);
      }
    }
  }

  TEST_CASE("the strict matcher takes every character but the wildcards for itself") {
    struct Case {
      std::string_view text, pattern;
      bool fits;
    };
    const Case cases[] = {
        {"user.created", "user.*", true},
        {"user.created.x", "user.**", true},
        {"a", "*", true},
        {"a.b", "**", true},
        {"order.v1.paid", "order.*.paid", true},
        {"order.v1.x.paid", "order.**.paid", true},
        {"abc", "a?c", true},
        {"userx", "user*", true},
        {"user.x", "user*", true},
        {"$node.connected", "$node.*", true},
        {"a+b", "a+b", true},
        {"user.created.x", "user.*", false},
        {"user", "user.*", false},
        {"a.b", "*", false},
        {"order.v1.x.paid", "order.*.paid", false},
        {"config.site.changed", "config.site.**.changed", false},
        // Beyond the table: what a dot, and what the signs of other pattern languages, mean.
        {"xcreated", "*.created", false},
        {"userXxXdone", "user.*.done", false},
        {"aab.x", "a+b.*", false},
        {"a+b.x", "a+b.*", true},
        {"[a].(b)|c^$.x", "[a].*.x", true},
        {"a.x", "[a].*.x", false},
        {"x$node.a.b", "*$node.*.b", true},
        {"", "", true},
        {"", "*", true},
        {"", "**", true},
        {"", "?", false},
        {"a", "", false},
    };
    for (const Case& c : cases) {
      CAPTURE(c.text);
      CAPTURE(c.pattern);
      CHECK(matches_strict(c.text, c.pattern) == c.fits);
    }
  }

  TEST_CASE("the signs of regular expressions mean nothing in compatible patterns either") {
    CHECK(matches_compatible("a+b.x.y", "a+b.*.y"));
    CHECK_FALSE(matches_compatible("aab.x.y", "a+b.*.y"));
    CHECK(matches_compatible("(a|b).x.y", "(a|b).*.y"));
    CHECK_FALSE(matches_compatible("a.x.y", "(a|b).*.y"));
  }

  TEST_CASE("a question mark takes one character, however many bytes it has") {
    for (const auto matches : {matches_compatible, matches_strict}) {
      CHECK(matches("aüc", "a?c"));
      CHECK(
          matches("a\xe2\x82\xac"
                  "c",
                  "a?c"));
      CHECK_FALSE(matches("aüc", "a??c"));
      CHECK(matches("a.c", "a?c"));
      CHECK(
          matches("a\xff"
                  "c",
                  "a?c"));  // A byte that is no UTF-8 counts as one.
      CHECK(matches("ünï.x.ö", "ünï.*.ö"));
    }
  }

  TEST_CASE("all short patterns agree with plain recursion on all short texts") {
    const auto texts = words("ab.", 5);
    for (const std::string& pattern : words("a.*?", 5)) {
      if (!is_general(pattern)) continue;
      for (const std::string& text : texts) {
        const bool compatible = matches_by_recursion(text, pattern, true);
        const bool strict = matches_by_recursion(text, pattern, false);
        if (matches_compatible(text, pattern) != compatible || matches_strict(text, pattern) != strict) {
          FAIL("text " << text << " pattern " << pattern);
        }
      }
    }
  }

  TEST_CASE("hostile patterns cost no more than text times pattern") {
    std::string pattern;
    for (int i = 0; i < 200; ++i) pattern += i % 2 == 0 ? "a*" : "**a";
    pattern += 'b';
    const std::string text(4000, 'a');
    CHECK_FALSE(matches_compatible(text, pattern));
    CHECK_FALSE(matches_strict(text, pattern));
    CHECK(matches_strict(text + "b", pattern));
    // 7 million steps. Backtracking would not end: the test would run into its time-out.
  }
}
