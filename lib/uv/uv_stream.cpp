#include "lib/uv/uv_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/base/assert.h"
#include "lib/uv/uv_address.h"
#include "lib/uv/uv_poller.h"

namespace weft {

namespace {

constexpr std::size_t kKeptBytesMax = 256UL << 10;  // A larger buffer is given back once it is empty.
constexpr int kKeepaliveProbes = 2;

int whole_seconds(Duration duration) {
  return static_cast<int>(
      std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(duration).count(), 1));
}

// Failures are ignored: a connection without these works, it only notices a dead peer later.
void apply_options(int fd, const StreamOptions& options) {
  const auto set = [fd](int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  if (options.user_timeout > Duration::zero()) {
    const auto timeout_ms = std::chrono::ceil<std::chrono::milliseconds>(options.user_timeout).count();
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(timeout_ms));
  }
  if (options.keepalive_idle > Duration::zero() && set(SOL_SOCKET, SO_KEEPALIVE, 1)) {
    set(IPPROTO_TCP, TCP_KEEPIDLE, whole_seconds(options.keepalive_idle));
    set(IPPROTO_TCP, TCP_KEEPINTVL, whole_seconds(options.keepalive_idle));
    set(IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes);
  }
}

}  // namespace

// What libuv holds on to: the handle and its requests. Freed by its close callback.
struct UvStream::Socket {
  uv_tcp_t tcp;
  uv_connect_t connecting;
  UvStream* owner;

  [[nodiscard]] uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&tcp); }

  static Socket* make(UvLoop& loop, UvStream* owner) {
    auto* socket = new Socket{};
    const int status = uv_tcp_init(loop.uv(), &socket->tcp);
    WEFT_ASSERT(status == 0);  // Cannot fail without flags.
    socket->owner = owner;
    socket->tcp.data = socket;
    return socket;
  }
};

UvStream::UvStream(UvLoop& loop, std::shared_ptr<Resolver> resolver, SocketAddress to,
                   const StreamOptions& options)
    : loop_(loop), options_(options), resolver_(std::move(resolver)), to_(std::move(to)) {
  WEFT_ASSERT(loop_.is_current());
  timer_.set_after(loop_, options_.connect_timeout, [this] {
    fail(Error(ErrorClass::kRetryable, "connect to " + to_.to_string() + ": timed out", "ETIMEDOUT"));
  });
  if (to_sockaddr(to_)) {
    addresses_.push_back(to_.host);
    connect_next();
    return;
  }
  lookup_ = resolver_->resolve(to_.host, [this](Result<std::vector<std::string>> found) {
    lookup_ = 0;
    if (!found.ok()) return fail(found.error());
    addresses_.assign(found->begin(), found->end());
    connect_next();
  });
}

UvStream::~UvStream() {
  WEFT_ASSERT(loop_.is_current());
  drop_socket();
}

std::unique_ptr<UvStream> UvStream::accept(UvLoop& loop, uv_stream_t* listener,
                                           const StreamOptions& options) {
  std::unique_ptr<UvStream> stream(new UvStream(loop, options));
  stream->socket_ = Socket::make(loop, stream.get());
  if (uv_accept(listener, stream->socket_->stream()) != 0) return nullptr;
  stream->opened();
  return stream;
}

// Never tells of a failure at once: the owner may be inside a call to us.
void UvStream::connect_next() {
  int status = 0;
  while (!addresses_.empty()) {
    const auto target = to_sockaddr({addresses_.front(), to_.port});
    WEFT_ASSERT(target.has_value());
    addresses_.pop_front();
    drop_socket();
    socket_ = Socket::make(loop_, this);
    status = uv_tcp_connect(&socket_->connecting, &socket_->tcp, reinterpret_cast<const sockaddr*>(&*target),
                            [](uv_connect_t* request, int result) {
                              auto* socket = static_cast<Socket*>(request->handle->data);
                              if (socket->owner == nullptr) return;
                              if (result == 0) {
                                socket->owner->connected();
                              } else {
                                socket->owner->connect_failed(result);
                              }
                            });
    if (status == 0) return;
  }
  timer_.set(loop_, loop_.now(), [this, status] { connect_failed(status); });
}

void UvStream::connect_failed(int status) {
  if (addresses_.empty()) return fail(uv_error("connect to " + to_.to_string(), status));
  connect_next();
}

void UvStream::connected() {
  timer_.cancel();
  resolver_.reset();
  addresses_.clear();
  opened();
  if (!pending_.empty() || closing_) loop_.flush_at_turn_end(*this);
}

void UvStream::opened() {
  state_ = State::kOpen;
  remote_ = remote_address_of(socket_->tcp);
  uv_fileno(reinterpret_cast<const uv_handle_t*>(&socket_->tcp), &descriptor_);
  apply_options(descriptor_, options_);
  uv_read_start(
      socket_->stream(),
      [](uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
        auto* socket = static_cast<Socket*>(handle->data);
        *buffer = uv_buf_init(socket->owner->loop_.read_slab(), UvLoop::kReadBytes);
      },
      [](uv_stream_t* stream, ssize_t count, const uv_buf_t*) {
        auto* socket = static_cast<Socket*>(stream->data);
        if (socket->owner != nullptr) socket->owner->received(count);
      });
}

void UvStream::received(ssize_t count) {
  if (count == 0) return;  // Nothing there after all.
  if (count < 0) {
    return fail(count == UV_EOF ? Error(ErrorClass::kRetryable, "the peer closed the connection", "EOF")
                                : uv_error("read", static_cast<int>(count)));
  }
  if (handler_ == nullptr) return;
  UvLoop& loop = loop_;
  handler_->on_data({loop.read_slab(), static_cast<std::size_t>(count)});
  // From here on this may be gone. A full slab means that more follows in this turn: the answers go out now,
  // while the peer has something to do with them.
  if (static_cast<std::size_t>(count) == UvLoop::kReadBytes) loop.flush_now();
}

bool UvStream::write(BytesView head, BytesView body) {
  WEFT_ASSERT(loop_.is_current());
  if (state_ == State::kClosed || closing_) return false;
  const std::size_t count = head.size() + body.size();
  if (queued_bytes() + count > options_.queue_bytes_max) {
    refused_ = true;
    return false;
  }
  pending_.append(head);
  pending_.append(body);
  if (state_ == State::kOpen && writable_ == nullptr) loop_.flush_at_turn_end(*this);
  return true;
}

std::size_t UvStream::queued_bytes() const {
  return pending_.size() + blocked_.size() - blocked_sent_;
}

void UvStream::close_after_flush() {
  WEFT_ASSERT(loop_.is_current());
  closing_ = true;
  if (state_ == State::kOpen && writable_ == nullptr) loop_.flush_at_turn_end(*this);
}

void UvStream::flush() {
  if (state_ != State::kOpen || writable_ != nullptr) return;
  if (!pending_.empty()) {
    const Result<std::size_t> taken = send(pending_.view());
    if (!taken.ok()) return fail(taken.error());
    if (*taken < pending_.size()) {
      std::swap(blocked_, pending_);
      blocked_sent_ = *taken;
      writable_ = UvPoller(loop_).watch(descriptor_, *this);
      if (writable_ == nullptr) return fail(uv_error("write", UV_ENFILE));
      writable_->set_interest(false, true);
      return let_writers_on();
    }
    if (pending_.capacity() > kKeptBytesMax) pending_ = Buffer();
    pending_.clear();
  }
  if (closing_) return fail(Error(ErrorClass::kRetryable, "closed", "CLOSED"));
  let_writers_on();
}

void UvStream::on_writable() {
  const Result<std::size_t> taken = send(blocked_.view().substr(blocked_sent_));
  if (!taken.ok()) return fail(taken.error());
  blocked_sent_ += *taken;
  if (blocked_sent_ == blocked_.size()) {
    blocked_ = Buffer();
    blocked_sent_ = 0;
    writable_.reset();
    if (!pending_.empty() || closing_) loop_.flush_at_turn_end(*this);
  }
  let_writers_on();
}

// Not libuv's way of writing, which raises SIGPIPE when the peer is gone: what that does is our user's
// matter.
Result<std::size_t> UvStream::send(BytesView bytes) const {
  ssize_t count = 0;
  do {
    count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
  return uv_error("write", uv_translate_sys_error(errno));
}

void UvStream::let_writers_on() {
  if (!refused_ || queued_bytes() > options_.queue_bytes_max / 2) return;
  refused_ = false;
  if (handler_ != nullptr) handler_->on_writable();
}

// Silent, and safe at any time: requests in flight find no owner.
void UvStream::drop_socket() {
  loop_.forget_flush(*this);
  if (lookup_ != 0) resolver_->cancel(std::exchange(lookup_, 0));
  writable_.reset();  // It has a share in the socket.
  if (socket_ == nullptr) return;
  Socket* socket = std::exchange(socket_, nullptr);
  socket->owner = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&socket->tcp),
           [](uv_handle_t* handle) { delete static_cast<Socket*>(handle->data); });
}

void UvStream::fail(const Error& reason) {
  const Error kept = reason;  // It may live in a closure that goes with the timer.
  drop_socket();
  timer_.cancel();
  state_ = State::kClosed;
  pending_ = Buffer();
  blocked_ = Buffer();
  blocked_sent_ = 0;
  if (handler_ != nullptr) handler_->on_closed(kept);
}

}  // namespace weft
