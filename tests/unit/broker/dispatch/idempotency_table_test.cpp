#include "broker/dispatch/idempotency_table.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace weft {

using namespace std::chrono_literals;
using Turn = IdempotencyTable::Turn;

namespace {

constexpr Instant kStart{1h};

struct Table {
  explicit Table(const IdempotencyPolicy& policy = {}) : table(policy) {}

  Turn begin(const std::string& key, Instant now = kStart) {
    return table.begin(key, now, [this](const IdempotencyTable::Answer& answer) {
      answers.push_back(answer.result ? answer.result->value().i64_or(-1) : -answer.result.error().code());
    });
  }
  void finish(const std::string& key, int result, Instant now = kStart) {
    table.finish(key, {Payload(Value(result)), {}, {}}, now);
  }

  IdempotencyTable table;
  std::vector<std::int64_t> answers;
};

Payload headers(Value key) {
  Value object = Value::object();
  object.set(IdempotencyTable::kHeader, std::move(key));
  return Payload(std::move(object));
}

}  // namespace

TEST_SUITE("idempotency table") {
  TEST_CASE("the first one runs, those who come meanwhile wait for it, later ones are answered") {
    Table t;
    CHECK(t.begin("k") == Turn::kRun);
    CHECK(t.begin("k") == Turn::kWait);
    CHECK(t.begin("k") == Turn::kWait);
    CHECK(t.begin("other") == Turn::kRun);
    CHECK(t.answers.empty());
    t.finish("k", 7);
    CHECK(t.answers == std::vector<std::int64_t>{7, 7});
    CHECK(t.begin("k") == Turn::kAnswered);
    CHECK(t.answers.size() == 3);
    t.finish("k", 8);  // A second end of the same key changes nothing.
    CHECK(t.begin("k") == Turn::kAnswered);
    CHECK(t.answers.back() == 7);
  }

  TEST_CASE("results are kept for their time") {
    Table t({.ttl = 10s});
    (void)t.begin("k");
    t.finish("k", 1, kStart + 5s);
    CHECK(t.begin("k", kStart + 14s) == Turn::kAnswered);
    CHECK(t.begin("k", kStart + 15s) == Turn::kRun);
  }

  TEST_CASE(
      "final failures are kept, failures that may be tried again are not; whoever waits hears of both") {
    for (const bool retryable : {false, true}) {
      Table t;
      (void)t.begin("k");
      (void)t.begin("k");
      t.table.finish("k", {Error(retryable ? ErrorClass::kServer : ErrorClass::kClient, "no"), {}, {}},
                     kStart);
      CHECK(t.answers.size() == 1);
      CHECK(t.begin("k") == (retryable ? Turn::kRun : Turn::kAnswered));
    }
  }

  TEST_CASE("the oldest results go first when there are too many; calls under way are never dropped") {
    Table t({.entries_max = 3});
    for (const char* key : {"a", "b", "c"}) (void)t.begin(key);
    CHECK(t.begin("d") == Turn::kRun);  // Runs, unrecognised.
    t.finish("d", 4);
    CHECK(t.begin("d") == Turn::kRun);
    CHECK(t.table.size() == 3);
    t.finish("b", 2);
    t.finish("a", 1);
    CHECK(t.begin("e") == Turn::kRun);  // In the place of b.
    CHECK(t.begin("a") == Turn::kAnswered);
    CHECK(t.begin("c") == Turn::kWait);
    CHECK(t.begin("b") == Turn::kRun);
    CHECK(t.table.size() == 3);
  }

  TEST_CASE("results are dropped when they are too large together") {
    Table t({.bytes_max = 1000});
    for (int i = 0; i < 10; ++i) {
      const std::string key = "k" + std::to_string(i);
      (void)t.begin(key);
      t.table.finish(key, {Payload(Value(std::string(300, 'x'))), {}, {}}, kStart);
      CHECK(t.table.bytes() <= 1000);
    }
    CHECK(t.table.size() == 3);
    CHECK(t.begin("k9") == Turn::kAnswered);
    CHECK(t.begin("k6") == Turn::kRun);
    (void)t.begin("huge");
    t.table.finish("huge", {Payload(Value(std::string(5000, 'x'))), {}, {}}, kStart);
    CHECK(t.table.bytes() == 0);
    CHECK(t.begin("huge") == Turn::kRun);
  }

  TEST_CASE("keys belong to an action; senseless ones are passed over") {
    const IdempotencyTable table{IdempotencyPolicy()};
    CHECK(table.key_of("a.b", headers("k")) != table.key_of("a.c", headers("k")));
    CHECK_FALSE(table.key_of("a.b", headers("k")).empty());
    for (const Value& key : {Value(), Value(5), Value(""), Value(std::string(257, 'k')), Value::object()})
      CHECK(table.key_of("a.b", headers(key)).empty());
    CHECK(table.key_of("a.b", {}).empty());
    CHECK(table.key_of("a.b", Payload(arr(1))).empty());
    CHECK(IdempotencyTable({.ttl = 0s}).key_of("a.b", headers("k")).empty());
  }
}

}  // namespace weft
