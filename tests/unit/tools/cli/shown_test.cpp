// From what the mesh says to what people see.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/protocol/serializer.h"
#include "tools/cli/catalog.h"
#include "tools/cli/listings.h"
#include "tools/cli/table.h"
#include "tools/cli/text.h"

namespace weft::cli {

namespace {

// Two workers of one service, a looker-on, a node that has gone, and "me".
Value node_rows() {
  return *parse_json(R"json([
    {"id":"me","available":true,"local":true,"metadata":{"observer":true},"services":[
      {"name":"$node","fullName":"$node","actions":{"$node.list":{}}}]},
    {"id":"w2","available":true,"metadata":{"zone":"eu"},"ipList":["10.0.0.2"],"port":4000,"cpu":7,"seq":2,
     "hostname":"host2","client":{"type":"weft","version":"0.1.0"},"services":[
      {"name":"$node","fullName":"$node","actions":{"$node.list":{}}},
      {"name":"greeter","fullName":"greeter","actions":{"greeter.hello":{},"greeter.bye":{}}}]},
    {"id":"w1","available":true,"metadata":{},"client":{"type":"nodejs","version":"0.15.2"},"ipList":[],"services":[
      {"name":"greeter","fullName":"greeter","actions":{"greeter.hello":{}}},
      {"name":"users","version":2,"fullName":"v2.users","actions":{"v2.users.list":{}}}]},
    {"id":"cli-7","available":true,"metadata":{"observer":true},"services":[]},
    {"id":"old","available":false,"metadata":{},"services":[]}])json");
}

std::vector<std::string> names(const Value& rows, std::string_view key) {
  std::vector<std::string> list;
  for (const Value& row : rows.items()) list.emplace_back(row[key].str_or("?"));
  return list;
}
using Names = std::vector<std::string>;

std::string plain(const Table& table) {
  return render(table, {});
}

}  // namespace

TEST_SUITE("cli shown") {
  TEST_CASE("text width counts columns, not bytes") {
    CHECK(text_width("") == 0);
    CHECK(text_width("abc") == 3);
    CHECK(text_width("żółw") == 4);
    CHECK(text_width("日本") == 4);
    CHECK(text_width("e\u0301") == 1);  // A letter and its accent.
    CHECK(text_width("👍") == 2);
    CHECK(text_width("a\xff") == 2);
  }

  TEST_CASE("what peers send cannot steer the terminal") {
    CHECK(printable("\x1b[2Jx\x07") == "?[2Jx?");
    CHECK(printable("a\nb\tc") == "a b c");
    CHECK(printable("a\u202eb") == "a?b");
    CHECK(printable("\u009b1m") == "?1m");
    CHECK(printable("a\xff\xc0\x80z") == "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
    CHECK(printable("\xed\xa0\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // A surrogate.
    CHECK(printable("zwölf 日本") == "zwölf 日本");
    CHECK(printable_json("{\n\"a\": \"\u202e\u007f\u009b\"}") == "{\n\"a\": \"\\u202e\\u007f\\u009b\"}");
  }

  TEST_CASE("text is cut by columns") {
    CHECK(shortened("abcdef", 6) == "abcdef");
    CHECK(shortened("abcdef", 4) == "abc…");
    CHECK(shortened("日本語", 4) == "日…");
    CHECK(shortened("日本語", 3) == "日…");
    CHECK(shortened("abc", 0).empty());
    CHECK(shortened("abc", 1) == "…");
  }

  TEST_CASE("edit distance counts changes, and swaps as one") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("abc", "abc") == 0);
    CHECK(edit_distance("abc", "abd") == 1);
    CHECK(edit_distance("abc", "acb") == 1);
    CHECK(edit_distance("abc", "") == 3);
    CHECK(edit_distance("greeter.helo", "greeter.hello") == 1);
    CHECK(nearest("gretter", {"users", "greeter"}) == "greeter");
    CHECK(nearest("zzz", {"users", "greeter"}).empty());
    CHECK(nearest("a", {"b"}).empty());
  }

  TEST_CASE("a plain table has columns and nothing else") {
    const Table table{{{"Name"}, {"Count", true}, {"Last"}},
                      {{{"日本"}, {"7"}, {"x"}}, {{"a"}, {"1234567"}, {""}}}};
    CHECK(render(table, {}) ==
          "Name    Count  Last\n"
          "日本        7  x\n"
          "a     1234567\n");
  }

  TEST_CASE("a boxed table lines up whatever the width of its letters") {
    const Table table{{{"N"}, {"C", true}}, {{{"日本"}, {"7"}}, {{"é"}, {"12"}}}};
    CHECK(render(table, {.boxes = true}) ==
          "┌──────┬────┐\n"
          "│ N    │  C │\n"
          "├──────┼────┤\n"
          "│ 日本 │  7 │\n"
          "│ é    │ 12 │\n"
          "└──────┴────┘\n");
  }

  TEST_CASE("colours surround text, and change no width") {
    const Table table{{{"A"}, {"B"}}, {{{"on", Paint::kGood}, {"x"}}}};
    CHECK(render(table, {.colours = true}) == "\x1b[1mA\x1b[0m   \x1b[1mB\x1b[0m\n\x1b[32mon\x1b[0m  x\n");
    CHECK(painted("x", Paint::kBad, false) == "x");
  }

  TEST_CASE("a table fits the terminal: the widest columns give way") {
    const Table table{{{"Short"}, {"Long"}}, {{{"abc"}, {std::string(50, 'x')}}}};
    for (const bool boxes : {false, true}) {
      const std::string text = render(table, {.boxes = boxes, .width = 30});
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        CHECK(text_width(std::string_view(text).substr(begin, end - begin)) <= 30);
        begin = end + 1;
      }
      CHECK(text.find("abc") != text.npos);
      CHECK(text.find("x…") != text.npos);
    }
  }

  TEST_CASE("patterns: a piece of a name, or wildcards as in events") {
    CHECK(fits("math.add", ""));
    CHECK(fits("math.add", "th.a"));
    CHECK_FALSE(fits("math.add", "sub"));
    CHECK(fits("math.add", "math.*"));
    CHECK(fits("v2.math.add", "**.add"));
    CHECK_FALSE(fits("v2.math.add", "*.add"));
    CHECK(fits("math.add", "math.a?d"));
  }

  TEST_CASE("nodes: those that work and are there, sorted; all of them on demand") {
    const Value rows = node_rows();
    CHECK(names(shown_nodes(rows, {.self = "me"}), "id") == Names{"w1", "w2"});
    CHECK(names(shown_nodes(rows, {.all = true, .self = "me"}), "id") ==
          Names{"cli-7", "me", "old", "w1", "w2"});
    CHECK(names(shown_nodes(rows, {.pattern = "w*", .node = "w2", .self = "me"}), "id") == Names{"w2"});
  }

  TEST_CASE("who offers an action, and what there is instead") {
    const Value rows = node_rows();
    CHECK(offers(rows, "greeter.hello", "", "me"));
    CHECK(offers(rows, "greeter.bye", "w2", "me"));
    CHECK_FALSE(offers(rows, "greeter.bye", "w1", "me"));
    CHECK_FALSE(offers(rows, "greeter.nothing", "", "me"));
    CHECK(offers(rows, "$node.list", "", "me"));
    CHECK_FALSE(offers(rows, "$node.list", "w1", "me"));
    CHECK_FALSE(offers(rows, "$node.list", "me", "me"));
    CHECK(service_names(rows, "me") == Names{"greeter", "v2.users"});
    CHECK(action_names(rows, "greeter", "me") == Names{"greeter.bye", "greeter.hello"});
  }

  TEST_CASE("services and actions: what the asking node offers is left out, and what is internal") {
    const Value services = *parse_json(R"([
      {"name":"users","fullName":"v2.users","available":true,"nodes":["w1"]},
      {"name":"$node","fullName":"$node","available":true,"local":true,"nodes":["me","w1"]},
      {"name":"own","fullName":"own","available":true,"local":true,"nodes":["me"]},
      {"name":"gone","fullName":"gone","available":false,"nodes":["old"]}])");
    CHECK(names(shown_services(services, {.self = "me"}), "fullName") == Names{"v2.users"});
    const Value all = shown_services(services, {.all = true, .self = "me"});
    CHECK(names(all, "fullName") == Names{"$node", "gone", "v2.users"});
    CHECK(to_json(all[0]["nodes"]) == R"(["w1"])");
    CHECK(shown_services(services, {.node = "w2", .self = "me"}).empty());

    const Value actions = *parse_json(R"([
      {"name":"b.x","available":true,"endpoints":[{"nodeID":"me","available":true},{"nodeID":"w1","available":true}]},
      {"name":"a.x","available":true,"endpoints":[{"nodeID":"w2","available":true}]},
      {"name":"own.x","available":true,"endpoints":[{"nodeID":"me","available":true}]},
      {"name":"once.x","available":false,"endpoints":[]}])");
    const Value shown = shown_endpoints(actions, {.self = "me"});
    CHECK(names(shown, "name") == Names{"a.x", "b.x"});
    CHECK(shown[1]["count"].i64() == 1);
    CHECK(nodes_of(shown[1], "me") == Names{"w1"});
    CHECK(names(shown_endpoints(actions, {.node = "w1", .self = "me"}), "name") == Names{"b.x"});
    CHECK(names(shown_endpoints(actions, {.all = true, .self = "me"}), "name") ==
          Names{"a.x", "b.x", "once.x"});
  }

  TEST_CASE("tables of nodes, services, actions and events") {
    CHECK(plain(nodes_table(shown_nodes(node_rows(), {.self = "me"}), "me", false)) ==
          "Node  State   Services  Client         Address        CPU  Metadata\n"
          "w1    online         2  nodejs 0.15.2  -                -  -\n"
          "w2    online         1  weft 0.1.0     10.0.0.2:4000  7 %  {\"zone\":\"eu\"}\n");
    const std::string details =
        plain(nodes_table(shown_nodes(node_rows(), {.all = true, .self = "me"}), "me", true));
    for (const char* piece : {"me (this)", "offline", "greeter, v2.users", "host2"}) {
      CAPTURE(piece);
      CHECK(details.find(piece) != details.npos);
    }

    const Value services = *parse_json(R"([{"fullName":"v2.users","available":true,"nodes":["a","b"],
      "actions":{"v2.users.list":{},"v2.users.get":{}},"events":{"user.*":{}}}])");
    CHECK(plain(services_table(services, false)) ==
          "Service   State  Actions  Events  Nodes\n"
          "v2.users  ok           2       1      2\n");
    CHECK(plain(services_table(services, true)) ==
          "Service   State  Actions    Events  Nodes\n"
          "v2.users  ok     list, get  user.*  a, b\n");

    const Value actions =
        *parse_json(R"([{"name":"math.add","available":true,"endpoints":[{"nodeID":"a"}],"action":{
      "params":{"$$strict":true,"a":"number|optional|min:1","b":{"type":"string","optional":true},"c":"array",
                "d":[{"type":"string"},{"type":"number"}]}}},
      {"name":"math.pi","available":false,"endpoints":[],"action":{}}])");
    CHECK(plain(actions_table(actions, false)) ==
          "Action    State          Nodes  Params\n"
          "math.add  ok                 1  a?, b?, c, d\n"
          "math.pi   not available      0  -\n");
    CHECK(plain(actions_table(actions, true)).find("a?: number, b?: string, c: array, d: string|number") !=
          std::string::npos);

    const Value events = *parse_json(
        R"([{"name":"user.*","group":"mail","available":true,"endpoints":[{"nodeID":"a"},{"nodeID":"b"}]}])");
    CHECK(plain(events_table(events, false)) ==
          "Event   Group  State  Nodes\n"
          "user.*  mail   ok         2\n");
    CHECK(plain(events_table(events, true)).find("a, b") != std::string::npos);
  }
}

}  // namespace weft::cli
