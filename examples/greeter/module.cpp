// The service as a module: weft-runner greeter.so

#include "weft/module.h"
#include "examples/greeter/greeter.h"

WEFT_MODULE(services) {
  services.add<greeter::Greeter>();
}
