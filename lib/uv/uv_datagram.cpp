#include "lib/uv/uv_datagram.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "lib/uv/uv_address.h"

namespace weft {

struct UvDatagramSocket::Socket {
  uv_udp_t udp;
  UvLoop* loop;
  Network::DatagramCallback on_datagram;
  bool closed = false;

  void close() {
    closed = true;
    uv_close(reinterpret_cast<uv_handle_t*>(&udp),
             [](uv_handle_t* handle) { delete static_cast<Socket*>(handle->data); });
  }
};

namespace {

// Takes only what comes in over the interface that was joined; by default Linux hands a socket the datagrams
// of every group that any process of the host has joined.
void take_own_groups_only(const uv_udp_t& handle) {
#ifdef IP_MULTICAST_ALL
  uv_os_fd_t fd = -1;
  const int off = 0;
  if (uv_fileno(reinterpret_cast<const uv_handle_t*>(&handle), &fd) == 0) {
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off);
  }
#else
  static_cast<void>(handle);
#endif
}

int apply(uv_udp_t& udp, const DatagramOptions& options) {
  const char* interface = options.interface_address.empty() ? nullptr : options.interface_address.c_str();
  if (options.multicast_group) {
    take_own_groups_only(udp);
    if (const int status =
            uv_udp_set_membership(&udp, options.multicast_group->c_str(), interface, UV_JOIN_GROUP);
        status != 0) {
      return status;
    }
    if (const int status = uv_udp_set_multicast_ttl(&udp, options.multicast_ttl); status != 0) return status;
    // Nodes of one host find each other by our own datagrams coming back.
    if (const int status = uv_udp_set_multicast_loop(&udp, 1); status != 0) return status;
  }
  if (interface != nullptr) {
    if (const int status = uv_udp_set_multicast_interface(&udp, interface); status != 0) return status;
  }
  return options.broadcast ? uv_udp_set_broadcast(&udp, 1) : 0;
}

}  // namespace

Result<std::unique_ptr<DatagramSocket>> UvDatagramSocket::open(UvLoop& loop, const DatagramOptions& options,
                                                               Network::DatagramCallback on_datagram) {
  WEFT_ASSERT(loop.is_current());
  const std::string what = "UDP " + options.bind.to_string();
  const auto bind = to_sockaddr(options.bind);
  if (!bind) {
    return Error(ErrorClass::kBase, what + ": the address to bind must be numeric", "EINVAL");
  }
  auto* socket = new Socket{{}, &loop, std::move(on_datagram)};
  if (const int status = uv_udp_init(loop.uv(), &socket->udp); status != 0) {
    delete socket;
    return uv_error(what, status);
  }
  socket->udp.data = socket;
  std::unique_ptr<DatagramSocket> owner(new UvDatagramSocket(socket));
  int status = uv_udp_bind(&socket->udp, reinterpret_cast<const sockaddr*>(&*bind),
                           options.reuse_address ? UV_UDP_REUSEADDR : 0);
  if (status == 0) status = apply(socket->udp, options);
  if (status == 0) {
    status = uv_udp_recv_start(
        &socket->udp,
        [](uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
          *buffer = uv_buf_init(static_cast<Socket*>(handle->data)->loop->read_slab(), UvLoop::kReadBytes);
        },
        [](uv_udp_t* udp, ssize_t count, const uv_buf_t* buffer, const sockaddr* from, unsigned flags) {
          auto* self = static_cast<Socket*>(udp->data);
          if (count < 0 || from == nullptr || (flags & UV_UDP_PARTIAL) != 0 || self->closed) return;
          self->on_datagram({buffer->base, static_cast<std::size_t>(count)}, from_sockaddr(from));
        });
  }
  if (status != 0) return uv_error(what, status);
  return owner;
}

UvDatagramSocket::~UvDatagramSocket() {
  WEFT_ASSERT(socket_->loop->is_current());
  socket_->close();
}

void UvDatagramSocket::send(BytesView datagram, const SocketAddress& to) {
  const auto target = to_sockaddr(to);
  if (!target) return;
  const uv_buf_t bytes =
      uv_buf_init(const_cast<char*>(datagram.data()), static_cast<unsigned>(datagram.size()));
  uv_udp_try_send(&socket_->udp, &bytes, 1, reinterpret_cast<const sockaddr*>(&*target));
}

SocketAddress UvDatagramSocket::local_address() const {
  return local_address_of(socket_->udp);
}

}  // namespace weft
