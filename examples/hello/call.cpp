#include <iostream>

#include "weft/weft.h"

weft::Task<int> program(weft::Broker& broker) {
  co_await broker.wait_for_services("greeter");
  const weft::Value answer = co_await broker.call("greeter.hello", {{"name", "Ann"}});
  std::cout << answer.str() << "\n";
  co_return 0;
}

int main(int argc, char** argv) {
  weft::App app(
      {.name_space = argc > 1 ? argv[1] : "hello", .transporter = "TCP", .log_level = weft::LogLevel::kWarn});
  return app.run(program);
}
