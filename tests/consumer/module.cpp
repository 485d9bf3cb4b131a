#include <weft/module.h>

WEFT_MODULE(services) {
  auto greeter = std::make_shared<weft::Service>("greeter");
  greeter->action("hello", [](weft::Context&) { return "Hello"; });
  services.add_service(std::move(greeter));
}
