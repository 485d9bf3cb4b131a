#include "weft/weft.h"

class Greeter : public weft::Service {
 public:
  Greeter() : Service("greeter") { action("hello", &Greeter::hello); }

  std::string hello(weft::Context& context) {
    return "Hello " + std::string(context.params.value()["name"].str()) + "!";
  }
};

int main() {
  weft::App app({.name_space = "hello", .transporter = "TCP"});
  app.add<Greeter>();
  return app.run();
}
