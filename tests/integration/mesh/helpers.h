#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/protocol/serializer.h"
#include "tests/support/sim_mesh.h"

// Services and observers that the tests of whole meshes share.
namespace weft::test {

struct Pair {
  std::int64_t a = 0;
  std::string b;
};
WEFT_FIELDS(Pair, a, b)

// What a handler sees of its call.
inline Value seen(Context& c) {
  return Value{{"level", c.level()},
               {"caller", c.caller()},
               {"requestID", c.request_id()},
               {"parentID", c.parent_id()},
               {"id", c.id()},
               {"nodeID", c.node_id()},
               {"action", c.action()},
               {"meta", c.meta()},
               {"headers", c.headers().is_null() ? Value::object() : c.headers()},
               {"remaining", c.remaining() ? Value(to_ms(*c.remaining())) : Value()}};
}

inline std::shared_ptr<Service> echo() {
  return make_service("echo", [](Service& s) {
    s.action("seen", [](Context& c) { return seen(c); });
    s.action("seen_later", [](Context& c) -> Task<Value> {
      co_await c.broker().sleep(std::chrono::milliseconds(1));
      co_return seen(c);
    });
    s.action("value", [](Context& c) { return c.params.value()["value"]; });
    s.action("params", [](Context& c) { return c.params; });
    s.action("nothing", [](Context&) {});
    s.action("whoami", [](Context& c) { return c.broker().node_id(); });
    s.action("sleep", [](Context& c) -> Task<int> {
      co_await c.broker().sleep(from_ms(c.params.value()["ms"].f64()));
      co_return 1;
    });
    s.action("sleep200",
             [](Context& c) -> Task<int> {
               co_await c.broker().sleep(std::chrono::seconds(10));
               co_return 1;
             },
             {.timeout = std::chrono::milliseconds(200)});
    s.action("set_meta", [](Context& c) {
      for (const Member& member : c.params.value().members()) c.meta()[member.key] = member.value;
    });
    s.action("set_meta_and_fail", [](Context& c) {
      c.meta().merge(c.params.value());
      throw ClientError("failed", 409);
    });
  });
}

// Calls on behalf of its callers: `action` with `params`.
inline std::shared_ptr<Service> front() {
  return make_service("front", [](Service& s) {
    s.action("relay", [](Context& c) -> Task<Value> {
      const Value params = c.params.value();
      co_await c.broker().sleep(from_ms(params["first_ms"].f64_or(0)));
      Value own = seen(c);
      const std::string action(params["action"].str());
      CallOptions options;
      const Value& meta = params["meta"];
      if (meta.is_object()) options.meta = &meta;
      if (params["timeout"].is_number()) options.timeout = from_ms(params["timeout"].f64());
      own.set("below", co_await c.call(action, params["params"], options));
      own.set("meta_after", c.meta());
      co_return own;
    });
  });
}

struct Runs {
  int count = 0;
};

// Fails as often as it is called, with an error of the given class.
inline std::shared_ptr<Service> failing(Runs& runs, ErrorClass error_class = ErrorClass::kRetryable) {
  return make_service("failing", [&runs, error_class](Service& s) {
    s.action("run", [&runs, error_class](Context&) {
      ++runs.count;
      Error(error_class, "failed").raise();
    });
  });
}

using Lines = std::vector<std::string>;

inline std::shared_ptr<Service> answering(std::string name, int answer = 1) {
  return make_service(std::move(name), [answer](Service& s) {
    s.action("get", [answer](Context&) { return answer; });
    s.action("later", [answer](Context& c) -> Task<int> {
      co_await c.broker().sleep(std::chrono::seconds(5));
      co_return answer;
    });
  });
}

// The internal events of a broker, as "name key=value …" of what matters.
struct Internal {
  explicit Internal(Broker& broker)
      : listener(broker.on_local("**", [this](std::string_view event, const Value& payload) {
          std::string line(event);
          if (payload.contains("node")) line += " " + std::string(payload["node"]["id"].str());
          for (const char* key :
               {"reconnected", "unexpected", "localService", "wasReconnect", "graceFul", "type"}) {
            if (payload.contains(key)) line += std::string(" ") + key + "=" + to_json(payload[key]);
          }
          lines.push_back(line);
          payloads.push_back(payload);
        })) {}
  [[nodiscard]] Lines take() { return std::exchange(lines, {}); }
  [[nodiscard]] std::size_t count(std::string_view line) const {
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), line));
  }
  Lines lines;
  std::vector<Value> payloads;
  LocalListener listener;
};

inline Error refused(SimMesh& mesh, Broker& broker, std::string_view action) {
  const auto result = mesh.await(broker.try_call(action));
  REQUIRE_FALSE(result.ok());
  return result.error();
}

}  // namespace weft::test
