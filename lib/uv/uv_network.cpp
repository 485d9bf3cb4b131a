#include "lib/uv/uv_network.h"

#include <netinet/in.h>

#include <utility>

#include "lib/base/assert.h"
#include "lib/uv/uv_address.h"
#include "lib/uv/uv_datagram.h"
#include "lib/uv/uv_stream.h"

namespace weft {

namespace {

constexpr int kBacklog = 1024;  // A whole mesh dials a node at once when it comes back.

class UvListener final : public StreamListener {
 public:
  [[nodiscard]] static Result<std::unique_ptr<UvListener>> open(UvLoop& loop, const SocketAddress& at,
                                                                const StreamOptions& options,
                                                                Network::AcceptCallback& on_accept) {
    auto* socket = new Socket{{}, &loop, options, {}};
    uv_tcp_init(loop.uv(), &socket->tcp);
    socket->tcp.data = socket;
    std::unique_ptr<UvListener> owner(new UvListener(socket));
    const auto address = to_sockaddr(at);
    WEFT_ASSERT(address.has_value());
    int status = uv_tcp_bind(&socket->tcp, reinterpret_cast<const sockaddr*>(&*address), 0);
    if (status == 0) {
      status = uv_listen(reinterpret_cast<uv_stream_t*>(&socket->tcp), kBacklog, accept);
    }
    if (status != 0) return uv_error("listen on " + at.to_string(), status);
    socket->on_accept = std::move(on_accept);
    return owner;
  }

  ~UvListener() override {
    WEFT_ASSERT(socket_->loop->is_current());
    socket_->closed = true;
    uv_close(reinterpret_cast<uv_handle_t*>(&socket_->tcp),
             [](uv_handle_t* handle) { delete static_cast<Socket*>(handle->data); });
  }

  [[nodiscard]] SocketAddress local_address() const override { return local_address_of(socket_->tcp); }

 private:
  struct Socket {
    uv_tcp_t tcp;
    UvLoop* loop;
    StreamOptions options;
    Network::AcceptCallback on_accept;
    bool closed = false;
  };

  explicit UvListener(Socket* socket) : socket_(socket) {}

  static void accept(uv_stream_t* listener, int status) {
    auto* socket = static_cast<Socket*>(listener->data);
    if (status != 0 || socket->closed) return;
    std::unique_ptr<Stream> stream = UvStream::accept(*socket->loop, listener, socket->options);
    if (stream != nullptr) socket->on_accept(std::move(stream));
  }

  Socket* socket_;
};

std::string broadcast_of(const uv_interface_address_t& entry) {
  if (entry.address.address4.sin_family != AF_INET) return {};
  sockaddr_in address = entry.address.address4;
  address.sin_addr.s_addr |= ~entry.netmask.netmask4.sin_addr.s_addr;
  return from_sockaddr(reinterpret_cast<const sockaddr*>(&address)).host;
}

}  // namespace

UvNetwork::UvNetwork(UvLoop& loop) : loop_(loop), resolver_(std::make_shared<Resolver>(loop)) {}

std::unique_ptr<Stream> UvNetwork::connect(const SocketAddress& to, const StreamOptions& options) {
  return std::make_unique<UvStream>(loop_, resolver_, to, options);
}

Result<std::unique_ptr<StreamListener>> UvNetwork::listen(const SocketAddress& at,
                                                          const StreamOptions& options,
                                                          AcceptCallback on_accept) {
  WEFT_ASSERT(loop_.is_current());
  std::vector<std::string> hosts;
  if (at.host.empty()) {
    hosts = {"::", "0.0.0.0"};  // The first takes IPv4 too, where the host has IPv6.
  } else if (to_sockaddr(at)) {
    hosts = {at.host};
  } else {
    auto found = Resolver::resolve_now(at.host);
    if (!found.ok()) return found.error();
    hosts = std::move(*found);
  }
  std::optional<Error> reason;
  for (const std::string& host : hosts) {
    auto listener = UvListener::open(loop_, {host, at.port}, options, on_accept);
    if (listener.ok()) return std::unique_ptr<StreamListener>(std::move(*listener));
    if (!reason) reason = listener.error();
  }
  return *reason;
}

Result<std::unique_ptr<DatagramSocket>> UvNetwork::open_datagram(const DatagramOptions& options,
                                                                 DatagramCallback on_datagram) {
  return UvDatagramSocket::open(loop_, options, std::move(on_datagram));
}

std::vector<InterfaceAddress> UvNetwork::interfaces() const {
  uv_interface_address_t* entries = nullptr;
  int count = 0;
  if (uv_interface_addresses(&entries, &count) != 0) return {};
  std::vector<InterfaceAddress> addresses;
  for (int i = 0; i < count; ++i) {
    const uv_interface_address_t& entry = entries[i];
    addresses.push_back({
        .name = entry.name,
        .address = from_sockaddr(reinterpret_cast<const sockaddr*>(&entry.address)).host,
        .broadcast = broadcast_of(entry),
        .is_ipv4 = entry.address.address4.sin_family == AF_INET,
        .is_loopback = entry.is_internal != 0,
    });
  }
  uv_free_interface_addresses(entries, count);
  return addresses;
}

std::string UvNetwork::hostname() const {
  char text[UV_MAXHOSTNAMESIZE] = "";
  std::size_t size = sizeof text;
  return uv_os_gethostname(text, &size) == 0 ? std::string(text, size) : std::string("localhost");
}

}  // namespace weft
