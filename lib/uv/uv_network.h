#pragma once

#include <memory>

#include "lib/net/network.h"
#include "lib/uv/resolver.h"
#include "lib/uv/uv_loop.h"

namespace weft {

// The Network of real programs, over libuv. The loop is borrowed and outlives it; sockets made here may
// outlive it, but not the loop.
class UvNetwork final : public Network {
 public:
  explicit UvNetwork(UvLoop& loop);

  std::unique_ptr<Stream> connect(const SocketAddress& to, const StreamOptions& options) override;
  // A host name is looked up before this returns.
  Result<std::unique_ptr<StreamListener>> listen(const SocketAddress& at, const StreamOptions& options,
                                                 AcceptCallback on_accept) override;
  // `bind` is numeric.
  Result<std::unique_ptr<DatagramSocket>> open_datagram(const DatagramOptions& options,
                                                        DatagramCallback on_datagram) override;
  // Those that are up.
  [[nodiscard]] std::vector<InterfaceAddress> interfaces() const override;
  [[nodiscard]] std::string hostname() const override;

 private:
  UvLoop& loop_;
  std::shared_ptr<Resolver> resolver_;
};

}  // namespace weft
