// The same service in a program of its own: greeter-worker [options]

#include <iostream>

#include "examples/greeter/greeter.h"
#include "examples/greeter/options.h"

int main(int argc, char** argv) {
  greeter::Options options;
  if (!greeter::parse({argv + 1, argv + argc}, options)) {
    std::cerr << "usage: greeter-worker [options]\n" << greeter::kNodeOptionsHelp;
    return 2;
  }
  try {
    weft::App app(options.app);
    app.add<greeter::Greeter>();
    return app.run();
  } catch (const weft::Exception& error) {
    std::cerr << "greeter-worker: " << error.what() << "\n";
    return 1;
  }
}
