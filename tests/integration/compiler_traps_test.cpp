#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sim_mesh.h"

// What g++ 12 makes of expressions that contain a co_await: it destroys some temporaries twice, refuses
// others, and needs help with tail calls. Every shape of the API that docs and examples show stands here and
// is run, with members that count how often they are made and destroyed; the sanitizers see the rest. The
// shapes that must not compile are in tests/compile_fail.

namespace traps {

// Text that knows how many of its kind are alive.
struct Counted {
  Counted() { ++alive; }
  Counted(const char* value) : text(value) { ++alive; }             // NOLINT(google-explicit-constructor)
  Counted(std::string value) : text(std::move(value)) { ++alive; }  // NOLINT(google-explicit-constructor)
  Counted(const Counted& other) : text(other.text) { ++alive; }
  Counted(Counted&& other) noexcept : text(std::move(other.text)) { ++alive; }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) noexcept = default;
  ~Counted() { --alive; }

  std::string text;
  static inline int alive = 0;
};

struct AddParams {
  std::int64_t a = 0, b = 0;
};
WEFT_FIELDS(AddParams, a, b)

struct User {
  std::string name;
  std::vector<std::string> tags;
};
WEFT_FIELDS(User, name, tags)

struct Holder {
  Counted name;
  std::optional<std::int64_t> age;
};

}  // namespace traps

// A type of the user's own on the wire.
template <>
struct weft::Typed<traps::Counted> {
  static void read(TypedReader& reader, const Token& first, traps::Counted& out) {
    Typed<std::string>::read(reader, first, out.text);
  }
  static void write(ValueWriter& writer, const traps::Counted& value) {
    Typed<std::string>::write(writer, value.text);
  }
  static Value schema() { return Typed<std::string>::schema(); }
};

namespace traps {
WEFT_FIELDS(Holder, name, age)

inline constexpr weft::Action<AddParams, std::int64_t> kAdd{"math.add"};
inline constexpr weft::Action<Holder, Holder> kHold{"math.hold"};
}  // namespace traps

namespace weft {

using namespace std::chrono_literals;
using traps::AddParams;
using traps::Counted;
using traps::Holder;
using traps::kAdd;
using traps::kHold;
using traps::User;

namespace {

const std::string kLong = "a text that is too long to lie in the string object itself";

class Math : public Service {
 public:
  Math() : Service("math") {
    action("add", &Math::add);
    action("greet", &Math::greet, {.timeout = 2s});
    action("hold", [](Context&, const Holder& holder) { return holder; });
    action("later", [](Context& c, Holder holder) -> Task<Holder> {
      co_await c.broker().sleep(1ms);
      co_return holder;
    });
    action("sum", [](Context& c) {
      std::int64_t sum = 0;
      for (const auto& value : c.params.value()["list"].items()) sum += value.i64();
      return sum;
    });
    action("text", [](Context& c) -> Task<std::string> {
      co_await c.broker().sleep(1ms);
      co_return std::string(c.params.value()["text"].str());
    });
    // A coroutine lambda with captures: the handler owns them, and every run of it the handler.
    action("captured",
           [counted = Counted(kLong), list = std::vector<int>{1, 2, 3}](Context& c) -> Task<std::string> {
             co_await c.broker().sleep(1ms);
             co_return counted.text + std::to_string(list.size());
           });
    event("note", [](Context& c, const Holder& holder) { c.locals() = Value(holder.name.text); });
  }
  std::int64_t add(Context&, const AddParams& p) { return p.a + p.b; }
  Task<User> greet(Context& c, User user) {
    auto n = co_await c.call("math.add", {{"a", 1}, {"b", 2}});
    user.tags.push_back(user.name + std::to_string(n.i64()));
    co_return user;
  }
};

// Runs a shape on a broker of its own, and finds that it left nothing alive that it made, and nothing dead
// twice.
template <typename Shape>
void check_shape(Shape shape) {
  const int before = Counted::alive;
  {
    test::SimMesh mesh;
    Broker& a = mesh.add("a");
    mesh.add("b").add<Math>();
    mesh.start();
    const int running = Counted::alive;
    for (const char* node : {"a", "b"}) mesh.await(shape(mesh[node]));
    (void)a;
    mesh.run_for(1s);
    CHECK(Counted::alive == running);
  }
  CHECK(Counted::alive == before);
}

Task<int> ready_at_once(int value) {
  co_return value;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kChain = 200;  // Sanitizers keep every frame of the stack.
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int kChain = 200;
#else
constexpr int kChain = 200'000;
#endif
#else
constexpr int kChain = 200'000;
#endif

}  // namespace

TEST_SUITE("compiler traps") {
  TEST_CASE("params in braces") {
    check_shape([](Broker& broker) -> Task<void> {
      auto sum = co_await broker.call("math.add", {{"a", 1}, {"b", 2}});
      CHECK(sum.i64() == 3);
      sum = co_await broker.call("math.sum", {{"list", arr(1, 2, 3)}});
      CHECK(sum.i64() == 6);
      const auto text = co_await broker.call<std::string>(
          "math.text",
          {{"text", kLong}, {"more", {{"nested", {{"deep", kLong}}}, {"list", arr(kLong, arr(kLong))}}}});
      CHECK(text == kLong);
      const auto user =
          co_await broker.call<User>("math.greet", {{"name", kLong}, {"tags", arr("x", kLong)}});
      CHECK(user.tags.back() == kLong + "3");
    });
  }

  TEST_CASE("options in braces") {
    check_shape([](Broker& broker) -> Task<void> {
      const Value meta{{"text", kLong}};
      Value back;
      auto sum = co_await broker.call("math.add", {{"a", 1}, {"b", 2}}, {.timeout = 500ms, .node = "b"});
      CHECK(sum.i64() == 3);
      sum = co_await broker.call("math.add", {{"a", 1}, {"b", 2}},
                                 {.timeout = 500ms,
                                  .retries = 2,
                                  .node = "b",
                                  .meta = &meta,
                                  .request_id = kLong,
                                  .tracking = false,
                                  .response_meta = &back});
      CHECK(sum.i64() == 3);
      CHECK(back["text"].str() == kLong);
      const auto failed = co_await broker.try_call("no.such", {}, {.retries = 0});
      CHECK(failed.error().code() == 404);
    });
  }

  TEST_CASE("described structs: named, moved in, and braces where they are safe") {
    check_shape([](Broker& broker) -> Task<void> {
      const Holder named{Counted(kLong), 7};
      auto held = co_await broker.call<Holder>("math.hold", named);
      CHECK(held.name.text == kLong);
      held = co_await broker.call<Holder>("math.later", named);
      CHECK(held.name.text == kLong);
      held = co_await broker.call(kHold, named, {.timeout = 1s});
      CHECK(held.age == 7);
      Holder given{Counted(kLong), 8};
      held = co_await broker.call<Holder>("math.later", moved(given));
      CHECK(held.age == 8);
      const auto sum = co_await broker.call(kAdd, {20, 22});
      CHECK(sum == 42);
      const auto again = co_await broker.call<std::int64_t>("math.add", AddParams{1, 2});
      CHECK(again == 3);
    });
  }

  TEST_CASE("scalars, lists, values and nothing as params") {
    check_shape([](Broker& broker) -> Task<void> {
      const Value tree{{"text", kLong}};
      auto text = co_await broker.call<std::string>("math.text", tree);
      CHECK(text == kLong);
      text = co_await broker.call<std::string>("math.text", Value{{"text", kLong}});
      CHECK(text == kLong);
      std::vector<Result<Value>> refused;
      refused.push_back(co_await broker.try_call("math.add", nullptr));
      refused.push_back(co_await broker.try_call("math.add", 5));
      refused.push_back(co_await broker.try_call("math.add", kLong));
      refused.push_back(co_await broker.try_call("math.add"));
      refused.push_back(co_await broker.try_call("math.add", arr(kLong)));
      for (const auto& result : refused) CHECK(result.error().code() == 422);
    });
  }

  TEST_CASE("awaiting inside conditions, arguments, sums, loops and returns") {
    check_shape([](Broker& broker) -> Task<void> {
      if ((co_await broker.call("math.add", {{"a", 1}, {"b", 2}})).i64() != 3) FAIL("wrong");
      const std::string both = co_await broker.call<std::string>("math.text", {{"text", kLong}}) + "+" +
                               co_await broker.call<std::string>("math.text", {{"text", "b"}});
      CHECK(both == kLong + "+b");
      std::vector<std::string> all;
      for (int i = 0; i < 3; ++i)
        all.push_back(co_await broker.call<std::string>("math.text", {{"text", kLong}}));
      CHECK(all.size() == 3);
      std::int64_t left = 3;
      while ((co_await broker.call("math.add", {{"a", left}, {"b", -1}})).i64() > 0) --left;
      CHECK(left == 1);
      const auto inner = [](Broker& with) -> Task<std::string> {
        co_return co_await with.call<std::string>("math.text", {{"text", kLong}});
      };
      const std::string from_inner = co_await inner(broker);
      CHECK(from_inner == kLong);
      const auto result = co_await broker.call(
          "math.sum", {{"list", arr(co_await broker.call("math.add", {{"a", 1}, {"b", 1}}), 5)}});
      CHECK(result.i64() == 7);
      broker.emit("note", {{"name", co_await broker.call<std::string>("math.text", {{"text", kLong}})}});
    });
  }

  TEST_CASE("a call kept and awaited later, and a result named before its member is used") {
    check_shape([](Broker& broker) -> Task<void> {
      auto first = broker.call<Holder>("math.later", {{"name", kLong}});
      auto second = broker.call<Holder>("math.later", {{"name", "x"}});
      const Holder b = co_await std::move(second);
      const Holder a = co_await std::move(first);
      CHECK(a.name.text + b.name.text == kLong + "x");
      const auto user = co_await broker.call<User>("math.greet", {{"name", "bob"}, {"tags", arr()}});
      CHECK(user.tags.front() == "bob3");
      auto unused = broker.call<Holder>("math.later", {{"name", kLong}});  // Dropped: it runs on.
    });
  }

  TEST_CASE("several calls") {
    check_shape([](Broker& broker) -> Task<void> {
      const auto values = co_await broker.mcall({{"math.add", {{"a", 1}, {"b", 2}}},
                                                 {"math.text", {{"text", kLong}}, {.timeout = 1s}},
                                                 {"math.captured"}});
      CHECK(values[0].i64() == 3);
      CHECK(values[1].str() == kLong);
      CHECK(values[2].str() == kLong + "3");
      const auto settled =
          co_await broker.mcall({{"math.text", {{"text", kLong}}}, {"no.such", {{"x", kLong}}}}).settled();
      CHECK(settled[0]->str() == kLong);
      CHECK(settled[1].error().code() == 404);
      std::vector<CallRequest> requests;
      for (int i = 0; i < 20; ++i) requests.emplace_back("math.text", Value{{"text", kLong}});
      const auto many = co_await broker.mcall(std::move(requests));
      CHECK(many.size() == 20);
    });
  }

  TEST_CASE("names in braces") {
    check_shape([](Broker& broker) -> Task<void> {
      co_await broker.wait_for_services({"math", "$node"}, 5s);
      co_await broker.wait_for_services("math");
      const std::string name = "math";
      co_await broker.wait_for_services({name, std::string("$node")});
      const auto pongs = co_await broker.ping_all({"a", "b"}, 1s);
      CHECK(pongs.size() == 2);
      const auto pong = co_await broker.ping("nobody");
      CHECK_FALSE(pong.has_value());
    });
  }

  TEST_CASE("errors: caught, told apart, and thrown on") {
    check_shape([](Broker& broker) -> Task<void> {
      std::string seen;
      try {
        (void)co_await broker.call("no.such", {{"text", kLong}});
      } catch (const ServiceNotFoundError& error) {
        seen = error.data()["action"].str();
      }
      CHECK(seen == "no.such");
      const auto failing = [](Broker& with) -> Task<void> {
        const Holder held(Holder{Counted(kLong), {}});
        const auto result = co_await with.try_call("no.such", held);
        if (!result) throw ClientError(kLong + result.error().message(), 409);
      };
      try {
        co_await failing(broker);
        FAIL("it did not throw");
      } catch (const ClientError& error) {
        seen = error.what();
      }
      CHECK(seen.starts_with(kLong));
    });
  }

  TEST_CASE("coroutine lambdas with captures, spawned and awaited by name") {
    check_shape([](Broker& broker) -> Task<void> {
      int done = 0;
      broker.spawn([&broker, &done, counted = Counted(kLong)]() -> Task<void> {
        co_await broker.sleep(1ms);
        done += counted.text == kLong ? 1 : 0;
      });
      const Counted counted(kLong);
      const auto named = [&broker, counted](int times) -> Task<int> {
        for (int i = 0; i < times; ++i) co_await broker.sleep(1ms);
        co_return static_cast<int>(counted.text.size());
      };
      const int size = co_await named(3);
      CHECK(size == static_cast<int>(kLong.size()));
      CHECK(done == 1);
    });
  }

  TEST_CASE("long chains of coroutines that end at once do not grow the stack") {
    check_shape([](Broker&) -> Task<void> {
      std::int64_t sum = 0;
      for (int i = 0; i < kChain; ++i) sum += co_await ready_at_once(1);
      CHECK(sum == kChain);
    });
  }

  TEST_CASE("long chains of local calls that end at once do not grow the stack") {
    test::SimMesh mesh;
    mesh.add("a").add<Math>();
    mesh.start();
    const auto chain = [](Broker& broker) -> Task<std::int64_t> {
      std::int64_t sum = 0;
      for (int i = 0; i < kChain / 10; ++i) sum = co_await broker.call(kAdd, {sum, 1});
      co_return sum;
    };
    CHECK(mesh.await(chain(mesh["a"])) == kChain / 10);
  }
}

}  // namespace weft
