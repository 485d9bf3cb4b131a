#pragma once

#include <uv.h>

#include <memory>

#include "lib/net/network.h"
#include "lib/uv/uv_loop.h"

namespace weft {

// A UDP socket over libuv.
class UvDatagramSocket final : public DatagramSocket {
 public:
  [[nodiscard]] static Result<std::unique_ptr<DatagramSocket>> open(UvLoop& loop,
                                                                    const DatagramOptions& options,
                                                                    Network::DatagramCallback on_datagram);
  ~UvDatagramSocket() override;

  void send(BytesView datagram, const SocketAddress& to) override;
  [[nodiscard]] SocketAddress local_address() const override;

 private:
  struct Socket;
  explicit UvDatagramSocket(Socket* socket) : socket_(socket) {}

  Socket* socket_;  // Ours until closed; freed by libuv's close callback.
};

}  // namespace weft
