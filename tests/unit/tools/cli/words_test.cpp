// From the words of a command line to what they mean.

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "lib/protocol/serializer.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/params.h"

namespace weft::cli {

namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

const auto no_source = [](std::string_view source) -> Result<std::string> {
  return Error(ErrorClass::kValidation, "unexpected read of " + std::string(source));
};

// The params as JSON, "none", or what is wrong.
std::string params(const Words& words) {
  const auto parsed = parse_params(words, no_source);
  if (!parsed) return "error: " + parsed.error().message();
  return *parsed ? to_json(**parsed) : "none";
}

CommandLine parsed(const Words& words, const std::map<std::string, std::string>& environment = {}) {
  const auto outcome = parse_command_line(words, [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
  const auto* line = std::get_if<CommandLine>(&outcome);
  if (line == nullptr) FAIL(std::get<Answer>(outcome).text);
  return *line;
}

Answer refused(const Words& words, const std::map<std::string, std::string>& environment = {}) {
  const auto outcome = parse_command_line(words, [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
  const auto* answer = std::get_if<Answer>(&outcome);
  REQUIRE(answer != nullptr);
  return *answer;
}

bool has(const std::string& text, std::string_view piece) {
  return text.find(piece) != text.npos;
}

}  // namespace

TEST_SUITE("cli words") {
  TEST_CASE("params: each way to write a member") {
    const struct {
      Words words;
      const char* json;
    } rows[] = {
        {{}, "none"},
        {{"--name", "Bob"}, R"({"name":"Bob"})"},
        {{"--name=Bob"}, R"({"name":"Bob"})"},
        {{"--name", "Bob the builder"}, R"({"name":"Bob the builder"})"},
        {{"--url=http://x/?a=b"}, R"({"url":"http://x/?a=b"})"},
        {{"--age", "42"}, R"({"age":42})"},
        {{"--age", "-42"}, R"({"age":-42})"},
        {{"--age", "4.5"}, R"({"age":4.5})"},
        {{"--age=1e3"}, R"({"age":1000})"},
        {{"--big", "18446744073709551615"}, R"({"big":18446744073709551615})"},
        {{"--a", "1", "--b", "2"}, R"({"a":1,"b":2})"},
        {{"--on", "true", "--off", "false"}, R"({"on":true,"off":false})"},
        {{"--on", "--no-off"}, R"({"on":true,"off":false})"},
        {{"--a.b.c", "1", "--a.d", "x"}, R"({"a":{"b":{"c":1},"d":"x"}})"},
        {{"--tag[]", "a"}, R"({"tag":["a"]})"},
        {{"--tag[]", "a", "--tag[]", "1"}, R"({"tag":["a",1]})"},
        {{"--a.tags[]", "x"}, R"({"a":{"tags":["x"]}})"},
        {{"--list:=[1,null]", "--none:=null"}, R"({"list":[1,null],"none":null})"},
        {{"--empty", ""}, R"({"empty":""})"},
        {{"--empty="}, R"({"empty":""})"},
    };
    for (const auto& row : rows) {
      CAPTURE(row.json);
      CHECK(params(row.words) == row.json);
    }
  }

  TEST_CASE("params: quoted values, hex and what would lose digits stay text") {
    // Field case: --code "0033" → "0033"; --age 42 → 42; --tag[] a → ["a"]; --addr.city X →
    // {addr:{city:"X"}}.
    CHECK(params({"--code", "\"0033\"", "--age", "42", "--tag[]", "a", "--addr.city", "X"}) ==
          R"({"code":"0033","age":42,"tag":["a"],"addr":{"city":"X"}})");
    for (const char* text :
         {"0033", "0x1f", "1f", "+1", "1.", ".5", "1e", "--", "-", "NaN", "Infinity", "1e999", "null", "True",
          "123456789012345678901234567890", "1 ", "1,5", "{", "[1]"}) {
      CAPTURE(text);
      CHECK(parse_scalar(text) == Value(text));
    }
    CHECK(parse_scalar("\"42\"") == Value("42"));
    CHECK(parse_scalar("'true'") == Value("true"));
    CHECK(parse_scalar("\"\"") == Value(""));
    CHECK(parse_scalar("\"") == Value("\""));
    CHECK(parse_scalar("\"a'") == Value("\"a'"));
  }

  TEST_CASE("params: one JSON argument is taken as it is, and members go over it") {
    CHECK(params({R"({"a":1,"code":"42"})"}) == R"({"a":1,"code":"42"})");
    CHECK(params({"[1,2]"}) == "[1,2]");
    CHECK(params({"5"}) == "5");
    CHECK(params({"-5"}) == "-5");
    CHECK(params({"null"}) == "null");
    CHECK(params({"\"text\""}) == "\"text\"");
    CHECK(params({R"({"a":1,"o":{"x":1}})", "--a", "2", "--o.y", "3"}) == R"({"a":2,"o":{"x":1,"y":3}})");
    CHECK(params({"--a", "2", R"({"a":1,"b":3})"}) == R"({"a":2,"b":3})");
  }

  TEST_CASE("params: what contradicts itself says how to write it") {
    CHECK(has(params({"{bad"}), "is no JSON"));
    CHECK(has(params({"Bob"}), "--name value"));
    CHECK(has(params({"-x"}), "is no option"));
    CHECK(has(params({"{}", "{}"}), "JSON argument already"));
    CHECK(has(params({"--a", "1", "--a", "2"}), "--a[] VALUE"));
    CHECK(has(params({"--a", "1", "--a.b", "2"}), "has a value already"));
    CHECK(has(params({"--a.b", "1", "--a", "2"}), "given twice"));
    CHECK(has(params({"--a", "1", "--a[]", "2"}), "no list"));
    CHECK(has(params({"--a[]", "1", "--a", "2"}), "given twice"));
    CHECK(has(params({"--a..b", "1"}), "empty"));
    CHECK(has(params({"--[]", "1"}), "empty"));
    CHECK(has(params({"--a:={"}), "is no JSON"));
    CHECK(has(params({"[1]", "--a", "1"}), "object"));
  }

  TEST_CASE("params: standard input and files") {
    const auto source = [](std::string_view name) -> Result<std::string> {
      if (name == "-") return std::string(R"({"from":"stdin"})");
      if (name == "@p.json") return std::string("{\"from\":\"file\"}\n");
      return std::string("no json");
    };
    const Words input = {"-", "--x", "1"}, file = {"@p.json"}, other = {"@other"};
    CHECK(to_json(**parse_params(input, source)) == R"({"from":"stdin","x":1})");
    CHECK(to_json(**parse_params(file, source)) == R"({"from":"file"})");
    CHECK(has(parse_params(other, source).error().message(), "other holds no JSON"));
  }

  TEST_CASE("durations") {
    CHECK(*parse_duration("5") == 5s);
    CHECK(*parse_duration("0.25") == 250ms);
    CHECK(*parse_duration("300ms") == 300ms);
    CHECK(*parse_duration("2m") == 2min);
    CHECK(*parse_duration("0") == 0s);
    for (const char* bad : {"", "x", "-1", "5h", "1e99", "nan", "5 s"}) {
      CAPTURE(bad);
      CHECK_FALSE(parse_duration(bad).ok());
    }
  }

  TEST_CASE("command line: options before, behind and between the words of a call") {
    const CommandLine line =
        parsed({"--json", "call", "--timeout", "1.5", "math.add", "--a", "5", "-n", "test", "--b=-3",
                "--node", "n1", "--retries", "2", "--meta", R"({"u":1})"});
    CHECK(line.command == Command::kCall);
    CHECK(line.mesh.json);
    CHECK(line.mesh.timeout == 1500ms);
    CHECK(line.mesh.name_space == "test");
    CHECK(line.send.name == "math.add");
    CHECK(line.send.words == Words{"--a", "5", "--b=-3"});
    CHECK(line.send.node == "n1");
    CHECK(line.send.retries == 2);
    CHECK(to_json(line.send.meta) == R"({"u":1})");
  }

  TEST_CASE("command line: values that look like commands or options stay values") {
    CHECK(parsed({"call", "a.b", "--cmd", "emit"}).send.words == Words{"--cmd", "emit"});
    CHECK(parsed({"call", "a.b", "--x", "-5", "--y", "-z"}).send.words == Words{"--x", "-5", "--y", "-z"});
    CHECK(parsed({"call", "a.b", "--x", "1", "--", "--timeout", "3", "--json"}).send.words ==
          Words{"--x", "1", "--timeout", "3", "--json"});
    CHECK(parsed({"call", "a.b", R"({"a":[1]})", "--json"}).send.words == Words{R"({"a":[1]})"});
    CHECK(parsed({"call", "a.b", "[1,2]"}).send.words == Words{"[1,2]"});
    CHECK(parsed({"call", "a.b", "--x:=[1]", "--t[]", "{}"}).send.words == Words{"--x:=[1]", "--t[]", "{}"});
  }

  TEST_CASE("command line: lists, events and pings") {
    const CommandLine list = parsed({"actions", "math.*", "-d", "--all", "--node", "n1"});
    CHECK(list.command == Command::kActions);
    CHECK(list.list.pattern == "math.*");
    CHECK(list.list.details);
    CHECK(list.list.all);
    CHECK(list.list.node == "n1");
    const CommandLine event =
        parsed({"broadcast", "user.created", "--group", "mail", "--id", "5", "--group", "b"});
    CHECK(event.command == Command::kBroadcast);
    CHECK(event.send.groups == Words{"mail", "b"});
    CHECK(event.send.words == Words{"--id", "5"});
    CHECK(parsed({"ping", "n1", "n2"}).ping_nodes == Words{"n1", "n2"});
    CHECK(parsed({"ping"}).ping_nodes.empty());
  }

  TEST_CASE("command line: the environment stands in for options, and options go before it") {
    const std::map<std::string, std::string> environment = {
        {"TRANSPORTER", "nats://h:1"}, {"NAMESPACE", "env"}, {"SERIALIZER", "MsgPack"},
        {"TCP_URLS", "h:1/n"},         {"UDP_PORT", "5555"}, {"UDP_DISCOVERY", "false"}};
    const CommandLine from_environment = parsed({"nodes"}, environment);
    CHECK(from_environment.mesh.transporter == "nats://h:1");
    CHECK(from_environment.mesh.name_space == "env");
    CHECK(from_environment.mesh.serializer == "MsgPack");
    CHECK(from_environment.mesh.tcp_urls == "h:1/n");
    CHECK(from_environment.mesh.udp_port == 5555);
    CHECK_FALSE(from_environment.mesh.udp);
    const CommandLine given = parsed({"nodes", "-t", "TCP", "-n", "mine", "--udp-port", "6666"}, environment);
    CHECK(given.mesh.transporter == "TCP");
    CHECK(given.mesh.name_space == "mine");
    CHECK(given.mesh.udp_port == 6666);
    const CommandLine plain = parsed({"nodes"}, {{"TRANSPORTER", ""}});
    CHECK(plain.mesh.transporter == "TCP");
    CHECK(plain.mesh.udp);
    CHECK(plain.mesh.timeout == 5s);
    CHECK_FALSE(parsed({"nodes", "--no-udp"}).mesh.udp);
  }

  TEST_CASE("command line: NATS credentials come from the environment") {
    const auto line = parsed({"nodes"}, {{"NATS_USER", "ann"},
                                         {"NATS_PASSWORD", "42"},
                                         {"NATS_TLS", "true"},
                                         {"NATS_TLS_CA", "/ca.pem"},
                                         {"STRATEGY", "Nonsense"}});
    CHECK(line.mesh.nats.user == "ann");
    CHECK(line.mesh.nats.password == "42");
    CHECK(line.mesh.nats.tls);
    CHECK(line.mesh.nats.tls_ca_file == "/ca.pem");
    CHECK(has(refused({"nodes"}, {{"NATS_TLS", "perhaps"}}).text, "NATS_TLS"));
  }

  TEST_CASE("command line: what is wrong is named, with exit code 2") {
    const struct {
      Words words;
      const char* piece;
    } rows[] = {
        {{}, "Usage"},
        {{"nonsense"}, "There is no command 'nonsense'"},
        {{"--json"}, "A command is missing"},
        {{"nodes", "--nonsense"}, "--nonsense"},
        {{"nodes", "a", "b"}, "b"},
        {{"nodes", "--", "x"}, "not expected"},
        {{"call"}, "ACTION"},
        {{"call", "{}"}, "name comes first"},
        {{"call", "a.b", "--meta", "{"}, "--meta is no JSON"},
        {{"call", "a.b", "--meta", "5"}, "JSON object"},
        {{"call", "a.b", "--retries", "x"}, "--retries"},
        {{"call", "a.b", "--retries", "-1"}, "--retries"},
        {{"nodes", "--timeout", "soon"}, "--timeout"},
        {{"nodes", "--timeout"}, "--timeout"},
        {{"nodes", "--udp-port", "70000"}, "--udp-port"},
        {{"nodes", "--log-level", "loud"}, "--log-level"},
        {{"nodes", "-t", "memory://x"}, "one process"},
    };
    for (const auto& row : rows) {
      const Answer answer = refused(row.words);
      CAPTURE(answer.text);
      CHECK(answer.exit_code == kExitUsage);
      CHECK(has(answer.text, row.piece));
    }
    CHECK(has(refused({"nodes"}, {{"UDP_DISCOVERY", "perhaps"}}).text, "UDP_DISCOVERY"));
  }

  TEST_CASE("command line: help of every command has its usage, options and examples") {
    const Answer all = refused({"--help"});
    CHECK(all.exit_code == kExitOk);
    for (const char* command :
         {"nodes", "services", "actions", "events", "call", "emit", "broadcast", "ping"}) {
      CAPTURE(command);
      CHECK(has(all.text, std::string("\n  ") + command + " "));
      const Answer one = refused({command, "--help"});
      CHECK(one.exit_code == kExitOk);
      CHECK(has(one.text, std::string("Usage: weft ") + command));
      for (const char* piece : {"--transporter", "--namespace", "--timeout", "--json", "Examples:"}) {
        CHECK(has(one.text, piece));
      }
    }
    const Answer version = refused({"--version"});
    CHECK(version.exit_code == kExitOk);
    CHECK(version.text.starts_with("weft "));
  }
}

}  // namespace weft::cli
