// JSON text, as it is read and written.

#include <cmath>
#include <limits>

#include "lib/value/iso_time.h"
#include "tests/unit/lib/protocol/codec_support.h"

namespace weft::test {

namespace {

Value parsed(std::string_view text) {
  const auto value = parse_json(text);
  REQUIRE_MESSAGE(value.ok(), text);
  return *value;
}

}  // namespace

TEST_SUITE("json") {
  TEST_CASE("numbers keep every bit a 64-bit integer or a double can hold") {
    struct Row {
      std::string_view text;
      Value value;
    };
    const Row rows[] = {
        {"0", 0},
        {"7", 7},
        {"-1", -1},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"9223372036854775808", std::uint64_t{1} << 63},
        {"18446744073709551615", UINT64_MAX},
        {"18446744073709551616", 0x1p64},
        {"-9223372036854775809", -0x1p63},
        {"99999999999999999999", 1e20},
        {"123456789012345678901234567890", 123456789012345678901234567890.0},
        {"1.0", 1.0},
        {"0.1", 0.1},
        {"1e2", 100.0},
        {"1E+2", 100.0},
        {"-2.5e-3", -0.0025},
        {"5e-324", 5e-324},
        {"1.7976931348623157e308", std::numeric_limits<double>::max()},
        {"1e400", std::numeric_limits<double>::infinity()},
        {"-1e400", -std::numeric_limits<double>::infinity()},
        {"1e-400", 0.0},
        {"0.0e999", 0.0},
        {"1e99999999999999999999", std::numeric_limits<double>::infinity()},
        {"1e-99999999999999999999", 0.0},
    };
    for (const Row& row : rows) {
      CAPTURE(row.text);
      const Value value = parsed(row.text);
      CHECK(value.kind() == row.value.kind());
      CHECK(value == row.value);
    }
    const std::string tiny = "0." + std::string(400, '0') + "1e401";
    CHECK(parsed(tiny).f64() == 1.0);
    const std::string huge = "1" + std::string(400, '0');
    CHECK(std::isinf(parsed(huge).f64()));
    CHECK(parsed(huge + "e-400").f64() == 1.0);
  }

  TEST_CASE("minus zero stays minus zero") {
    for (const std::string_view text : {"-0", "-0.0", "-0e5", "-1e-400"}) {
      const Value value = parsed(text);
      REQUIRE(value.kind() == Value::Kind::kDouble);
      CHECK(value.f64() == 0);
      CHECK(std::signbit(value.f64()));
    }
    CHECK(to_json(-0.0) == "-0");
  }

  TEST_CASE("doubles are written in the fewest digits that read back the same") {
    struct Row {
      double number;
      std::string_view text;
    };
    const Row rows[] = {{5.0, "5"},
                        {0.1, "0.1"},
                        {1.5, "1.5"},
                        {-2.25, "-2.25"},
                        {1e300, "1e+300"},
                        {1e-7, "1e-07"},
                        {9007199254740993.0, "9007199254740992"},
                        {0.1 + 0.2, "0.30000000000000004"}};
    for (const Row& row : rows) {
      CHECK(to_json(row.number) == row.text);
      CHECK(parsed(row.text).f64() == row.number);
    }
    // As JavaScript writes them.
    const Row decimals[] = {{0.001, "0.001"},
                            {0.000001, "0.000001"},
                            {-0.5, "-0.5"},
                            {100000.0, "100000"},
                            {1234567.125, "1234567.125"},
                            {99999999.999999, "99999999.999999"},
                            {10.1, "10.1"},
                            {-20.0, "-20"},
                            {0.1 + 0.7, "0.7999999999999999"},
                            {33.333333, "33.333333"},
                            {1.000001, "1.000001"},
                            {1e20, "1e+20"}};
    for (const Row& row : decimals) {
      CHECK(to_json(row.number) == row.text);
      CHECK(parsed(row.text).f64() == row.number);
    }
    CHECK(to_json(UINT64_MAX) == "18446744073709551615");
    CHECK(to_json(INT64_MIN) == "-9223372036854775808");
  }

  TEST_CASE("what JSON has no word for is written as null") {
    CHECK(to_json(std::nan("")) == "null");
    CHECK(to_json(std::numeric_limits<double>::infinity()) == "null");
    CHECK(to_json(-std::numeric_limits<double>::infinity()) == "null");
    CHECK(to_json(Timestamp{INT64_MAX}) == "null");
    CHECK(to_json(Timestamp{8'640'000'000'000'001}) == "null");
  }

  TEST_CASE("binary and points in time are written as Node writes them") {
    CHECK(to_json(Binary{std::string("\0\x01\xff", 3)}) == R"({"type":"Buffer","data":[0,1,255]})");
    CHECK(to_json(Binary{}) == R"({"type":"Buffer","data":[]})");
    CHECK(to_json(Timestamp{1700000000123}) == R"("2023-11-14T22:13:20.123Z")");
    CHECK(to_json(Timestamp{8'640'000'000'000'000}) == R"("+275760-09-13T00:00:00.000Z")");
    CHECK(to_json(Timestamp{-62'198'755'200'000}) == R"("-000001-01-01T00:00:00.000Z")");
  }

  TEST_CASE("strings are escaped where they must be, and nowhere else") {
    CHECK(to_json(std::string_view("a\"\\/\b\f\n\r\t\0\x1f\x7f z", 14)) ==
          "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f z\"");
    CHECK(to_json("žluťoučký kůň 🐱 \u2028") == "\"žluťoučký kůň 🐱 \u2028\"");
    CHECK(to_json("") == "\"\"");
    // A special character at each place of a word, before and behind it.
    for (std::size_t size = 1; size < 20; ++size) {
      for (std::size_t at = 0; at < size; ++at) {
        for (const char special : {'"', '\\', '\x01', '\n'}) {
          std::string text(size, 'x');
          text[at] = special;
          CHECK(parsed(to_json(text)).str() == text);
        }
        std::string text(size, 'x');
        text.replace(at, 1, "é");
        CHECK(to_json(text) == "\"" + text + "\"");
      }
    }
  }

  TEST_CASE("escapes are read, each kind and at each place") {
    CHECK(parsed(R"("\"\\\/\b\f\n\r\t")").str() == "\"\\/\b\f\n\r\t");
    CHECK(parsed(R"("\u0041\u00e9\u20AC")").str() == "Aé€");
    CHECK(parsed(R"("\ud83d\uDE00")").str() == "😀");
    CHECK(parsed(R"("\u0000")").str() == std::string_view("\0", 1));
    CHECK(parsed("\"\xc3\xa9\xf0\x9f\x98\x80\"").str() == "é😀");
    for (const std::string_view bad : {R"("\x")", R"("\u12")", R"("\u12g4")", R"("\")", R"("\u")",
                                       R"("\ud83d\u00")", R"("\U0041")", R"("\u 041")", R"("\u+041")"}) {
      CAPTURE(bad);
      CHECK_FALSE(parse_json(bad).ok());
    }
  }

  TEST_CASE("a surrogate without its half is kept, and written as the escape it came as") {
    struct Row {
      std::string_view json;
      std::string_view text;
    };
    const Row rows[] = {{R"("\ud800")", "\xed\xa0\x80"},
                        {R"("\udfff")", "\xed\xbf\xbf"},
                        {R"("a\ud800b")",
                         "a\xed\xa0\x80"
                         "b"},
                        {R"("\udc00\ud800")", "\xed\xb0\x80\xed\xa0\x80"},
                        {R"("\ud800\ud800x")", "\xed\xa0\x80\xed\xa0\x80x"},
                        {R"("\ud83d\n")", "\xed\xa0\xbd\n"}};
    for (const Row& row : rows) {
      const Value value = parsed(row.json);
      CHECK(value.str() == row.text);
      CHECK(to_json(value) == row.json);
    }
    CHECK(parsed(R"({"\ud800":1})")["\xed\xa0\x80"].i64() == 1);
    CHECK(to_json(parsed(R"({"\ud800":1})")) == R"({"\ud800":1})");
  }

  TEST_CASE("text that is no UTF-8 is shown with replacement characters to people, and never read") {
    CHECK(to_json("a\xff"
                  "b\xc3") ==
          "\"a\xef\xbf\xbd"
          "b\xef\xbf\xbd\"");
    for (const std::string_view bad : {"\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\"",
                                       "{\"\xff\":1}", "\"\xf4\x90\x80\x80\""}) {
      CHECK_FALSE(parse_json(bad).ok());
    }
  }

  TEST_CASE("keys are text like any other") {
    const Value value = parsed(R"({"":1,"__proto__":{"x":2},"constructor":3,"a\"b":4,"\u0061":5})");
    CHECK(value.size() == 5);
    CHECK(value[""].i64() == 1);
    CHECK(value["__proto__"]["x"].i64() == 2);
    CHECK(value["constructor"].i64() == 3);
    CHECK(value["a\"b"].i64() == 4);
    CHECK(value["a"].i64() == 5);
    CHECK(to_json(value) == R"({"":1,"__proto__":{"x":2},"constructor":3,"a\"b":4,"a":5})");
  }

  TEST_CASE("of a key that comes twice the last value counts") {
    CHECK(parsed(R"({"a":1,"b":2,"a":3,"\u0061":4})") == Value{{"a", 4}, {"b", 2}});
  }

  TEST_CASE("white space may stand between all parts") {
    CHECK(parsed(" \n\t\r{ \"a\" : [ 1 , 2 , { } , [ ] ] , \"b\" : null } \n") ==
          Value{{"a", arr(1, 2, Value::object(), arr())}, {"b", nullptr}});
    CHECK(parsed(" 5 ").i64() == 5);
    CHECK(parsed("\n\"x\" ").str() == "x");
  }

  TEST_CASE("what is not JSON is an error") {
    for (const std::string_view bad : {"",
                                       " ",
                                       "{",
                                       "}",
                                       "[",
                                       "]",
                                       "{\"a\"}",
                                       "{\"a\":}",
                                       "{\"a\":1,}",
                                       "{,}",
                                       "{\"a\" 1}",
                                       "{a:1}",
                                       "{\"a\":1 \"b\":2}",
                                       "{\"a\":1,,\"b\":2}",
                                       "{1:2}",
                                       "{null:1}",
                                       "[1,]",
                                       "[,1]",
                                       "[1 2]",
                                       "[1}",
                                       "{\"a\":1]",
                                       "[1]]",
                                       "{}{}",
                                       "1 2",
                                       "[1] x",
                                       "\"a\" \"b\"",
                                       "\"a\"b",
                                       "a\"b\"",
                                       "nul",
                                       "nulll",
                                       "true1",
                                       "True",
                                       "falsey",
                                       "+1",
                                       "01",
                                       "-",
                                       "-a",
                                       "1.",
                                       ".5",
                                       "1e",
                                       "1e+",
                                       "1.e5",
                                       "0x10",
                                       "1_0",
                                       "Infinity",
                                       "NaN",
                                       "--1",
                                       "1-",
                                       "1.2.3",
                                       "1e5e5",
                                       "'a'",
                                       "\"a",
                                       "\"a\\\"",
                                       "\"\n\"",
                                       "\"\x01\"",
                                       "{\"a\":\"b}",
                                       "[\"a\",\"b]",
                                       "// x\n1",
                                       "\xef\xbb\xbf{}",
                                       ":",
                                       ",",
                                       "[:]",
                                       "{:}",
                                       "[\"a\":1]",
                                       "undefined"}) {
      CAPTURE(bad);
      const auto value = parse_json(bad);
      CHECK_FALSE(value.ok());
      if (!value.ok()) CHECK(value.error().type() == "MALFORMED_VALUE");
    }
    CHECK_FALSE(parse_json(std::string_view("1\0", 2)).ok());
    CHECK_FALSE(parse_json(std::string_view("\0", 1)).ok());
  }

  TEST_CASE("pretty text is indented by two spaces, empty things stay on their line") {
    const Value value{
        {"a", 1}, {"b", arr(1, arr(), Value::object(), arr(2))}, {"c", {{"d", "x"}}}, {"e", Value::object()}};
    CHECK(to_pretty_json(value) == R"({
  "a": 1,
  "b": [
    1,
    [],
    {},
    [
      2
    ]
  ],
  "c": {
    "d": "x"
  },
  "e": {}
})");
    CHECK(parsed(to_pretty_json(value)) == value);
    CHECK(to_pretty_json(5) == "5");
  }

  TEST_CASE("people's JSON may be nested beyond the limit when it is written") {
    CHECK(to_json(nested_arrays(300)).size() == 600);
    CHECK(parse_json(to_json(nested_arrays(200))).ok());
    CHECK_FALSE(parse_json(to_json(nested_arrays(201))).ok());
  }
}

}  // namespace weft::test
