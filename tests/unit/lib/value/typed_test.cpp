#include "lib/value/typed.h"

#include <doctest/doctest.h>

namespace typed_test {

struct Point {
  std::int64_t x = 0, y = 0;
};
WEFT_FIELDS(Point, x, y)

struct User {
  std::string name;
  std::vector<std::string> tags;
  std::optional<Point> home;
  std::map<std::string, double> scores;
  std::uint8_t level = 0;
};
WEFT_FIELDS(User, name, tags, home, scores, level)

struct Nothing {};
WEFT_FIELDS(Nothing)

}  // namespace typed_test

namespace weft {

using typed_test::Nothing;
using typed_test::Point;
using typed_test::User;

namespace {

template <typename T>
std::vector<Violation> read_into(const Value& value, T& out) {
  TreeReader tree(value);
  TypedReader reader(tree);
  Typed<T>::read(reader, reader.next(), out);
  REQUIRE_FALSE(reader.is_malformed());
  return reader.violations();
}

template <typename T>
Value written(const T& in) {
  TreeWriter writer;
  Typed<T>::write(writer, in);
  return writer.take();
}

}  // namespace

TEST_SUITE("typed") {
  TEST_CASE("a described struct is written and read back, unknown keys passed over") {
    const User user{"bob", {"a", "b"}, Point{1, 2}, {{"m", 1.5}}, 7};
    Value value = written(user);
    value.set("unknown", arr(1, Value{{"deep", true}}));
    User out;
    CHECK(read_into(value, out).empty());
    CHECK(out.name == "bob");
    CHECK(out.tags == user.tags);
    CHECK(out.home->y == 2);
    CHECK(out.scores == user.scores);
    CHECK(out.level == 7);
  }

  TEST_CASE("every violation is reported at once, with its path") {
    const Value value{{"name", 5},
                      {"tags", arr("x", 3, "y", nullptr)},
                      {"home", {{"x", "no"}}},
                      {"scores", Value::object()},
                      {"level", 300}};
    User out;
    const auto violations = read_into(value, out);
    REQUIRE(violations.size() == 6);
    CHECK(violations[0].field == "name");
    CHECK(violations[0].type == "string");
    CHECK(violations[0].actual == "5");
    CHECK(violations[1].field == "tags[1]");
    CHECK(violations[2].field == "tags[3]");
    CHECK(violations[3].field == "home.x");
    CHECK(violations[4].field == "home.y");
    CHECK(violations[4].type == "required");
    CHECK(violations[5].field == "level");
    CHECK(violations[5].type == "numberMax");
  }

  TEST_CASE("integer members take doubles without fraction, double members take integers") {
    Point point;
    CHECK(read_into(Value{{"x", 5.0}, {"y", -3}}, point).empty());
    CHECK(point.x == 5);
    CHECK(read_into(Value{{"x", 5.5}, {"y", 0}}, point).size() == 1);
    double number = 0;
    CHECK(read_into(Value(7), number).empty());
    CHECK(number == 7);
  }

  TEST_CASE("a violation shows no more than the beginning of a path that a peer made up") {
    std::map<std::string, std::vector<int>> lists;
    Value body = Value::object();
    body.set(std::string(100'000, 'k'), arr("x", "y"));
    const auto violations = read_into(body, lists);
    REQUIRE(violations.size() == 2);
    CHECK(violations[0].field.size() < 600);
    CHECK(violations[0].message.size() < 700);
  }

  TEST_CASE("an empty optional is left out, null reads as empty") {
    CHECK_FALSE(written(User{}).contains("home"));
    std::optional<int> maybe = 4;
    CHECK(read_into(Value(), maybe).empty());
    CHECK_FALSE(maybe);
  }

  TEST_CASE("binary is read from Node's JSON form too") {
    Binary binary;
    CHECK(read_into(Value{{"type", "Buffer"}, {"data", arr(1, 2, 255)}}, binary).empty());
    CHECK(binary.bytes == "\x01\x02\xff");
    CHECK(read_into(Value{{"type", "Buffer"}, {"data", arr(1, 256)}}, binary).size() == 1);
  }

  TEST_CASE("a struct publishes its rules in fastest-validator's form") {
    const Value rules = Typed<User>::rules();
    CHECK(rules["name"]["type"].str() == "string");
    CHECK(rules["home"]["optional"].boolean());
    CHECK(rules["home"]["props"]["x"]["integer"].boolean());
    CHECK(rules["tags"]["items"]["type"].str() == "string");
    CHECK(Typed<Nothing>::rules().is_object());
  }
}

}  // namespace weft
