// A worker for the tests of the command line: worker NODE_ID ZONE TRANSPORTER [TCP_URLS]
//
// Prints what happens, a line each: "ready PORT", "handling ACTION", "left NODE gracefully|suddenly". Ends
// when its standard input does, or at SIGTERM.

#include <cstdio>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace worker {

struct HelloParams {
  std::string name;
};
WEFT_FIELDS(HelloParams, name)

struct AddParams {
  double a = 0, b = 0;
};
WEFT_FIELDS(AddParams, a, b)

void tell(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

class Greeter : public weft::Service {
 public:
  Greeter() : Service("greeter") {
    action("hello", &Greeter::hello, {.description = "Greets by name"});
    action("whoami", [](weft::Context& c) {
      return weft::Value{{"node", c.broker().node_id()}, {"meta", c.meta()}};
    });
    action("fail", [](weft::Context&) -> int {
      throw weft::ClientError("no tea today", 418, "TEAPOT", weft::Value{{"cups", 0}});
    });
    action("ponder", [](weft::Context& c) -> weft::Task<int> {
      tell("handling greeter.ponder");
      co_await c.broker().sleep(std::chrono::minutes(10));
      co_return 42;
    });
  }
  std::string hello(weft::Context&, const HelloParams& params) { return "Hello " + params.name + "!"; }
};

class Math : public weft::Service {
 public:
  Math() : Service("math") {
    action("add", [](weft::Context&, const AddParams& params) { return params.a + params.b; });
  }
};

class Users : public weft::Service {
 public:
  Users() : Service("users") {
    action("create", [](weft::Context& c) {
      weft::Value user{{"id", 1}};
      user.merge(c.params.value());
      return user;
    });
    action("seen", [this](weft::Context&) { return seen_; });
    event("user.*", [this](weft::Context& c) {
      seen_.push_back(weft::Value{{"event", c.event()}, {"params", c.params.value()}, {"meta", c.meta()}});
    });
  }

 private:
  weft::Value seen_ = weft::Value::array();
};

int run(const std::vector<std::string>& words) {
  weft::AppOptions options;
  options.node_id = words.at(0);
  options.metadata = weft::Value{{"zone", words.at(1)}};
  options.transporter = words.at(2);
  options.tcp.host = "127.0.0.1";
  options.tcp.use_hostname = false;
  options.tcp.udp_discovery = false;
  if (words.size() > 3) options.tcp.urls = weft::Value(words[3]);
  options.log_level = weft::LogLevel::kWarn;
  options.broker.tracking.enabled = false;  // `ponder` is never done.
  options.broker.started = [](weft::Broker& broker) {
    tell("ready " + std::to_string(broker.node_list()[0]["port"].i64_or(0)));
  };
  weft::App app(std::move(options));
  app.add<Greeter>();
  app.add<Math>();
  app.add<Users>();
  const auto listener =
      app.broker().on_local("$node.disconnected", [](std::string_view, const weft::Value& event) {
        tell("left " + std::string(event["node"]["id"].str()) +
             (event["unexpected"].boolean() ? " suddenly" : " gracefully"));
      });
  return app.run();
}

}  // namespace worker

int main(int argc, char** argv) {
  return worker::run({argv + 1, argv + argc});
}
