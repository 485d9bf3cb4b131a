#include "weft/weft.h"

class Greeter : public weft::Service {
 public:
  Greeter() : Service("greeter") { action("hello", &Greeter::hello); }

  std::string hello(weft::Context& context) {
    return "Hello " + std::string(context.params.value()["name"].str()) + "!";
  }
};

int main(int argc, char** argv) {
  weft::App app({.name_space = argc > 1 ? argv[1] : "hello", .transporter = "TCP"});
  app.add<Greeter>();
  return app.run();
}
