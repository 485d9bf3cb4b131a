#include <weft/weft.h>

#include <cstdio>

struct HelloParams {
  std::string name;
};
WEFT_FIELDS(HelloParams, name)

int main() {
  weft::App app({.node_id = "consumer", .log_level = weft::LogLevel::kWarn});
  auto greeter = std::make_shared<weft::Service>("greeter");
  greeter->action("hello", [](weft::Context&, const HelloParams& params) { return "Hello " + params.name; });
  app.add_service(greeter);
  return app.run([](weft::Broker& broker) -> weft::Task<int> {
    auto text = co_await broker.call<std::string>("greeter.hello", {{"name", "mesh"}});
    std::puts(text.c_str());
    co_return text == "Hello mesh" ? 0 : 1;
  });
}
