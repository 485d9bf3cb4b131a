#pragma once

#include <memory>

namespace weft {

// Tells when sockets that a foreign library owns can be read or written. Part of a loop; loop thread only.
class Poller {
 public:
  class Handler {
   public:
    // Level triggered: asked for again and again while true. An error or hang-up on the socket shows as both.
    // The handler may change or destroy the watch from inside.
    virtual void on_readable() = 0;
    virtual void on_writable() = 0;

   protected:
    ~Handler() = default;
  };

  // Watches until it is destroyed. It holds a duplicate of the descriptor: the owner may close its own at any
  // time, and the other end sees the socket closed when both are.
  class Watch {
   public:
    virtual ~Watch() = default;
    virtual void set_interest(bool readable, bool writable) = 0;
  };

  virtual ~Poller() = default;
  // Starts without interest. The handler is borrowed and outlives the watch. Null when the system refuses.
  [[nodiscard]] virtual std::unique_ptr<Watch> watch(int descriptor, Handler& handler) = 0;
};

}  // namespace weft
