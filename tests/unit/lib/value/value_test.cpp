#include "lib/value/value.h"

#include <doctest/doctest.h>

#include "lib/value/iso_time.h"
#include "lib/value/value_io.h"

namespace weft {

TEST_SUITE("value") {
  TEST_CASE("braces make an object, in order, whatever the kinds of its values") {
    const Value value{
        {"a", 1}, {"b", "two"}, {"nested", {{"x", 1.5}, {"y", nullptr}}}, {"list", arr(1, "x", arr())}};
    REQUIRE(value.is_object());
    CHECK(value.size() == 4);
    CHECK(value["a"].i64() == 1);
    CHECK(value["b"].str() == "two");
    CHECK(value["nested"]["x"].f64() == 1.5);
    CHECK(value["nested"]["y"].is_null());
    CHECK(value["list"].items()[2].is_array());
    CHECK(value.members()[0].key == "a");
    CHECK(value.members()[3].key == "list");
  }

  TEST_CASE("items are read by number, the first one too, whether or not the value may be changed") {
    Value list = arr("x", arr(1, 2));
    CHECK(list[0].str() == "x");
    CHECK(list[1][0].i64() == 1);
    CHECK(list[std::size_t{1}][std::size_t{1}].i64() == 2);
    const Value& same = list;
    CHECK(same[0].str() == "x");
    CHECK(same[2].is_null());
    const Value number(5);
    CHECK(number[0].is_null());
  }

  TEST_CASE("a pair of strings in braces is a field, not a pair of iterators") {
    const Value value{{"a", "b"}};
    REQUIRE(value.is_object());
    CHECK(value["a"].str() == "b");
  }

  TEST_CASE("text keeps its bytes on both sides of the inline limit") {
    for (std::size_t size = 0; size < 40; ++size) {
      const std::string text(size, 'x');
      Value value(text);
      const Value copy = value;
      const Value moved = std::move(value);
      CHECK(copy.str() == text);
      CHECK(moved.str() == text);
      CHECK(value.is_null());  // NOLINT(bugprone-use-after-move): moving leaves null behind.
    }
  }

  TEST_CASE("items are read and changed by index, a literal 0 included") {
    Value list = arr(1, 2);
    list[0] = 7;
    CHECK(list[0].i64() == 7);
    CHECK_THROWS_AS((void)list[2], ValueError);
    const Value fixed = list;
    CHECK(fixed[0].i64() == 7);
    CHECK(fixed[2].is_null());
  }

  TEST_CASE("a copy is independent of its original") {
    Value original{{"list", arr(1, 2)}, {"text", "a text longer than fourteen bytes"}};
    Value copy = original;
    copy["list"].push_back(3);
    copy["text"] = "changed";
    CHECK(original["list"].size() == 2);
    CHECK(original["text"].str() == "a text longer than fourteen bytes");
    CHECK(copy["list"].size() == 3);
  }

  TEST_CASE("a value may be assigned from a part of itself") {
    Value value{{"inner", {{"deep", "still here after the outer one is gone"}}}};
    value = std::move(value["inner"]);
    CHECK(value["deep"].str() == "still here after the outer one is gone");
    value = Value(value["deep"]);
    CHECK(value.str() == "still here after the outer one is gone");
  }

  TEST_CASE("integers keep all 64 bits and compare by value with doubles") {
    CHECK(Value(INT64_MIN).i64() == INT64_MIN);
    CHECK(Value(UINT64_MAX).u64() == UINT64_MAX);
    CHECK(Value(std::uint64_t{5}).kind() == Value::Kind::kInt);
    CHECK(Value(5) == Value(5.0));
    CHECK_FALSE(Value(5) == Value(5.5));
    CHECK(Value(5.0).i64() == 5);
    CHECK_THROWS_AS((void)Value(5.5).i64(), ValueError);
    CHECK_THROWS_AS((void)Value(UINT64_MAX).i64(), ValueError);
    CHECK_THROWS_AS((void)Value(-1).u64(), ValueError);
  }

  TEST_CASE("access of a wrong kind throws and says what was there") {
    CHECK_THROWS_WITH_AS((void)Value("x").i64(), "expected integer, got string", ValueError);
    CHECK_THROWS_WITH_AS((void)Value(1).str(), "expected string, got integer", ValueError);
    const Value empty = Value::object();
    CHECK(empty["missing"].is_null());
  }

  TEST_CASE("of members with one name the last value stays, at the first place") {
    for (const int others : {0, 40}) {
      Value value = Value::object();
      value.append_member("a", 1);
      for (int i = 0; i < others; ++i) value.append_member("k" + std::to_string(i), i);
      value.append_member("a", 2);
      value.append_member("b", 3);
      value.append_member("a", 4);
      value.drop_duplicate_members();
      CHECK(value.size() == static_cast<std::size_t>(others) + 2);
      CHECK(value.members()[0].key == "a");
      CHECK(value["a"].i64() == 4);
      CHECK(value["b"].i64() == 3);
    }
  }

  TEST_CASE("paths reach into objects and arrays") {
    const Value value{{"a", {{"b", arr(10, Value{{"c", "x"}})}}}};
    REQUIRE(value.find_path("a.b[1].c") != nullptr);
    CHECK(value.find_path("a.b[1].c")->str() == "x");
    CHECK(value.find_path("a.b.0")->i64() == 10);
    CHECK(value.find_path("a.b[2]") == nullptr);
    CHECK(value.find_path("a.x.y") == nullptr);
  }

  TEST_CASE("a tree read and written token by token is the same tree") {
    const Value value{{"a", arr(1, -2, UINT64_MAX, 1.5, true, nullptr, arr(), Value::object())},
                      {"bin", Binary{"\x00\xff"}},
                      {"when", Timestamp{1700000000123}},
                      {"o", {{"x", {{"y", "z"}}}}}};
    TreeReader reader(value);
    Value out;
    REQUIRE(read_value(reader, out));
    CHECK(out == value);
    TreeWriter writer;
    write_value(writer, value);
    CHECK(writer.take() == value);
  }

  TEST_CASE("skipping a member's value leads to the next key") {
    const Value value{{"a", {{"deep", arr(1, 2)}}}, {"b", 2}};
    TreeReader reader(value);
    CHECK(reader.next().kind == Token::Kind::kBeginObject);
    CHECK(reader.next().text == "a");
    reader.skip();
    CHECK(reader.next().text == "b");
    CHECK(reader.next().integer == 2);
    CHECK(reader.next().kind == Token::Kind::kEndObject);
  }

  TEST_CASE("nesting beyond the limit is refused, not a crash") {
    Value deep;
    for (int i = 0; i < kValueDepthMax + 10; ++i) deep = arr(std::move(deep));
    TreeReader reader(deep);
    Value out;
    CHECK_FALSE(read_value(reader, out));
  }

  TEST_CASE("times are written as JavaScript writes them, and read back") {
    CHECK(to_iso_time({1700000000123}) == "2023-11-14T22:13:20.123Z");
    CHECK(to_iso_time({-1500}) == "1969-12-31T23:59:58.500Z");
    for (const std::int64_t ms : {0L, 1700000000123L, -1500L, 951782400000L}) {
      const auto parsed = parse_iso_time(to_iso_time({ms}));
      REQUIRE(parsed);
      CHECK(parsed->ms == ms);
    }
    for (const std::int64_t ms :
         {8'640'000'000'000'000, -8'640'000'000'000'000, -62'198'755'200'000, -62'167'219'200'001}) {
      const auto parsed = parse_iso_time(to_iso_time({ms}));
      REQUIRE(parsed);
      CHECK(parsed->ms == ms);
    }
    CHECK(to_iso_time({8'640'000'000'000'000}) == "+275760-09-13T00:00:00.000Z");
    CHECK(to_iso_time({-62'198'755'200'000}) == "-000001-01-01T00:00:00.000Z");
    CHECK_FALSE(parse_iso_time("+275760-09-13T00:00:00.001Z"));
    CHECK_FALSE(parse_iso_time("-000000-01-01"));
    CHECK(parse_iso_time("2023-11-14T23:13:20+01:00")->ms == 1700000000000);
    CHECK_FALSE(parse_iso_time("2023-13-14"));
    CHECK_FALSE(parse_iso_time("2023-11-14T22:13:20.123Zx"));
    CHECK_FALSE(parse_iso_time("soon"));
  }
}

}  // namespace weft
