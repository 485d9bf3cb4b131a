#include "lib/sim/sim_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/assert.h"
#include "lib/sim/sim_fabric.h"
#include "lib/sim/sim_loop.h"
#include "lib/sim/sim_world.h"

namespace weft {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kResolveTime = milliseconds(1);
constexpr Duration kFirstRetransmission = milliseconds(200);  // Doubles each time.
constexpr Duration kFirstConnectRetry = seconds(1);           // Doubles each time.
constexpr Duration kKeepaliveProbes = seconds(2);             // Two unanswered probes, a second apart.
constexpr Duration kRetransmissionEnd = seconds(900);  // When a kernel gives up without a user timeout.

Duration give_up_after(const StreamOptions& options) {
  return options.user_timeout > Duration::zero() ? options.user_timeout : kRetransmissionEnd;
}

Error timed_out() {
  return sim_socket_error("ETIMEDOUT", "connection timed out");
}
Error was_reset() {
  return sim_socket_error("ECONNRESET", "connection reset by peer");
}

}  // namespace

SimConnection::SimConnection(SimFabric& fabric, std::uint64_t id, SimLoop& loop, const StreamOptions& options)
    : fabric_(fabric), world_(fabric.world()), id_(id) {
  ends_[0].host = &loop.host();
  ends_[0].loop = &loop;
  ends_[0].options = options;
  ends_[0].open = !loop.is_dead();
}

bool SimConnection::opened(int from) const {
  return fabric_.is_open(*ends_[from].host, *ends_[1 - from].host);
}

void SimConnection::start(const SocketAddress& to) {
  const SimFabric::Resolved target = fabric_.resolve(*ends_[0].host, to.host);
  if (!ends_[0].open) return remove_if_done();
  if (target.host == nullptr) {
    world_.after(kResolveTime, [self = shared_from_this(), host = to.host] {
      self->fail(0, sim_socket_error("ENOTFOUND", "no address is known for " + host));
    });
    return;
  }
  connect_timer_ = world_.after(ends_[0].options.connect_timeout,
                                [self = shared_from_this()] { self->fail(0, timed_out()); });
  try_connect(to, *target.host, target.loopback, 0);
}

// One SYN; another one follows when it or its answer is lost.
void SimConnection::try_connect(const SocketAddress& to, SimHost& host, bool loopback, int attempt) {
  if (!ends_[0].open) return;
  SimHost& from = *ends_[0].host;
  const SimLink& there = fabric_.link(from, host);
  const SimLink& back = fabric_.link(host, from);
  const bool lost = !fabric_.is_open(from, host) || !fabric_.is_open(host, from) ||
                    fabric_.chance(there.loss) || fabric_.chance(back.loss);
  if (lost) {
    world_.after(kFirstConnectRetry * (1 << std::min(attempt, 6)),
                 [self = shared_from_this(), to, &host, loopback, attempt] {
                   self->try_connect(to, host, loopback, attempt + 1);
                 });
    return;
  }
  const Duration round_trip = fabric_.sample_latency(there) + fabric_.sample_latency(back);
  world_.after(round_trip,
               [self = shared_from_this(), to, &host, loopback] { self->establish(to, host, loopback); });
}

void SimConnection::establish(const SocketAddress& to, SimHost& host, bool loopback) {
  End& client = ends_[0];
  End& server = ends_[1];
  if (!client.open) return remove_if_done();
  const auto listening = fabric_.listening(host, to.port);
  if (listening == nullptr || (listening->loopback_only && !loopback)) {
    return fail(0, sim_socket_error("ECONNREFUSED", "connection refused"));
  }
  world_.cancel(std::exchange(connect_timer_, 0));
  established_ = true;
  client.remote = {loopback ? "127.0.0.1" : host.address(), to.port};
  server.host = &host;
  server.loop = listening->loop;
  server.options = listening->options;
  server.remote = {loopback ? "127.0.0.1" : client.host->address(), fabric_.ephemeral_port(*client.host)};
  server.open = true;
  const Instant arrival = world_.now() + fabric_.sample_latency(fabric_.link(*client.host, host));
  client.last_arrival = arrival;
  server.loop->add(arrival, [self = shared_from_this(), listening] { self->accept(listening); });
  trace(0, "connects", 0);
  pump(0);
  path_changed();
}

void SimConnection::accept(const std::shared_ptr<SimListening>& listening) {
  if (!ends_[1].open) return remove_if_done();
  if (!listening->open) {
    close_end(1);
    fail(0, was_reset());
    return;
  }
  listening->on_accept(std::make_unique<SimStream>(shared_from_this(), 1));
}

bool SimConnection::write(int side, BytesView head, BytesView body) {
  End& end = ends_[side];
  if (!end.open || end.fin_wanted) return false;
  if (end.host->refuses_writes() ||
      end.pending.size() + head.size() + body.size() > end.options.queue_bytes_max) {
    end.refused = true;
    return false;
  }
  end.pending.append(head);
  end.pending.append(body);
  request_flush(side);
  return true;
}

void SimConnection::close_after_flush(int side) {
  End& end = ends_[side];
  if (!end.open || std::exchange(end.fin_wanted, true)) return;
  request_flush(side);
}

void SimConnection::drop(int side) {
  End& end = ends_[side];
  end.handler = nullptr;
  if (end.open) {
    close_end(side);
    if (established_) send_fin(side);
  }
  remove_if_done();
}

void SimConnection::request_flush(int side) {
  End& end = ends_[side];
  if (std::exchange(end.flush_set, true)) return;
  end.loop->at_end_of_turn([self = shared_from_this(), side] {
    self->ends_[side].flush_set = false;
    self->pump(side);
  });
}

// Puts on the wire what can go.
void SimConnection::pump(int side) {
  End& end = ends_[side];
  if (!established_ || !end.open || end.stuck) return;
  if (!opened(side)) {
    if (!end.pending.empty() || end.fin_wanted) begin_trouble(side);
    return;
  }
  const SimLink& link = fabric_.link(*end.host, *ends_[1 - side].host);
  while (!end.pending.empty() && end.in_flight < kWindowBytes && !end.stuck && end.open) {
    Buffer bytes = fabric_.take_buffer();
    if (end.pending.size() <= kWindowBytes) {
      std::swap(bytes, end.pending);
    } else {
      bytes.append(end.pending.view().substr(0, kWindowBytes));
      end.pending.consume(kWindowBytes);
    }
    send(side, link, std::move(bytes));
  }
  if (!end.open) return;
  if (!end.pending.empty() || end.stuck || !opened(1 - side)) {
    begin_trouble(side);
  } else {
    end_trouble(side);
  }
  if (end.pending.empty() && end.fin_wanted && !end.stuck) {
    send_fin(side);
    fail(side, sim_socket_error("CLOSED", "closed"));
    return;
  }
  notify_writable(side);
}

void SimConnection::send(int side, const SimLink& link, Buffer bytes) {
  End& end = ends_[side];
  const Duration limit = give_up_after(end.options);
  const SimLink& back = fabric_.link(*ends_[1 - side].host, *end.host);
  Duration waited{};
  Duration next = kFirstRetransmission;
  const auto again = [&] {
    waited += next;
    next *= 2;
    end.stuck = waited > limit;
    return !end.stuck;
  };
  while (fabric_.chance(link.loss)) {
    if (!again()) return fabric_.give_buffer(std::move(bytes));
  }
  const Duration arrived_after = waited;
  while (fabric_.chance(back.loss) || (waited > arrived_after && fabric_.chance(link.loss))) {
    if (!again()) break;  // It arrives, but this end never hears of it.
  }
  Instant start = world_.now() + arrived_after;
  if (link.bytes_per_second > 0) {
    start = std::max(start, end.wire_free);
    start += Duration(static_cast<Duration::rep>(static_cast<double>(bytes.size()) * 1e9 /
                                                 static_cast<double>(link.bytes_per_second)));
    end.wire_free = start;
  }
  const Instant arrival = std::max(start + fabric_.sample_latency(link), end.last_arrival);
  end.last_arrival = arrival;
  if (break_next_) {
    break_next_ = false;
    bytes.truncate(bytes.size() > 1 ? 1 + fabric_.below(bytes.size() - 1) : 0);
    if (!bytes.empty()) send_segment(side, arrival, std::move(bytes));
    if (ends_[1 - side].open) {
      ends_[1 - side].loop->add(arrival,
                                [self = shared_from_this(), side] { self->fail(1 - side, was_reset()); });
    }
    fail(side, was_reset());
    return;
  }
  if (bytes.size() > 1 && fabric_.chance(link.split)) {
    const std::size_t cut = 1 + fabric_.below(bytes.size() - 1);
    Buffer first = fabric_.take_buffer();
    first.append(bytes.view().substr(0, cut));
    bytes.consume(cut);
    send_segment(side, arrival, std::move(first));
  }
  send_segment(side, arrival, std::move(bytes));
}

void SimConnection::send_segment(int side, Instant arrival, Buffer bytes) {
  End& peer = ends_[1 - side];
  if (!peer.open) {  // Its machine answers with a reset, when there is one.
    fabric_.give_buffer(std::move(bytes));
    world_.after(arrival - world_.now(), [self = shared_from_this(), side] { self->bounce(side); });
    return;
  }
  ends_[side].in_flight += bytes.size();
  peer.loop->add(arrival, [self = shared_from_this(), side, bytes = std::move(bytes)]() mutable {
    self->receive(1 - side, std::move(bytes));
  });
}

void SimConnection::send_fin(int side) {
  End& end = ends_[side];
  End& peer = ends_[1 - side];
  end.fin_wanted = true;
  if (end.fin_sent || !peer.open) return;
  if (!opened(side)) return;  // path_changed() comes back to it.
  end.fin_sent = true;
  const Instant arrival =
      std::max(world_.now() + fabric_.sample_latency(fabric_.link(*end.host, *peer.host)), end.last_arrival);
  peer.loop->add(arrival, [self = shared_from_this(), side = 1 - side] {
    if (!self->ends_[side].open) return;
    self->trace(side, "sees the end", 0);
    self->close_end(side);
    self->tell_closed(side, sim_socket_error("EOF", "the peer closed the connection"));
    self->remove_if_done();
  });
}

void SimConnection::receive(int side, Buffer bytes) {
  End& end = ends_[side];
  End& sender = ends_[1 - side];
  sender.in_flight -= std::min(sender.in_flight, bytes.size());
  if (end.open) {
    world_.mix(bytes.view());
    trace(side, "reads", bytes.size());
    WEFT_ASSERT(end.handler != nullptr);  // Set before the first upcall.
    end.handler->on_data(bytes.view());
  } else {
    bounce(1 - side);
  }
  fabric_.give_buffer(std::move(bytes));
  if (!sender.pending.empty() && sender.open && !std::exchange(sender.retry_set, true)) {
    end_trouble(1 - side);  // Progress: the timeout starts anew.
    begin_trouble(1 - side);
    world_.after(fabric_.sample_latency(fabric_.link(*end.host, *sender.host)),
                 [self = shared_from_this(), side = 1 - side] {
                   self->ends_[side].retry_set = false;
                   self->pump(side);
                 });
  }
}

// What `side` sent found no socket at the other end.
void SimConnection::bounce(int side) {
  if (!ends_[side].open || !opened(1 - side)) return;
  const SimLink& back = fabric_.link(*ends_[1 - side].host, *ends_[side].host);
  world_.after(fabric_.sample_latency(back), [self = shared_from_this(), side] {
    if (self->ends_[side].open) self->fail(side, was_reset());
  });
}

void SimConnection::path_changed() {
  if (!established_) return;
  for (int side = 0; side < 2; ++side) {
    End& end = ends_[side];
    End& peer = ends_[1 - side];
    if (!end.open) {
      if (end.fin_wanted && !end.fin_sent && peer.open && opened(side)) retry_later(side);
      continue;
    }
    const bool whole = opened(side) && opened(1 - side);
    const Duration idle = end.options.keepalive_idle;
    world_.cancel(whole ? std::exchange(end.keepalive_timer, 0) : 0);
    if (!whole && idle > Duration::zero() && end.keepalive_timer == 0) {
      end.keepalive_timer = world_.after(
          idle + kKeepaliveProbes, [self = shared_from_this(), side] { self->fail(side, timed_out()); });
    }
    if (whole && !peer.open && !peer.fin_wanted) probe_later(side);
    if (whole && end.trouble_since != kNever) retry_later(side);
  }
}

// The other end is gone without a word: the next keepalive probe is answered by a reset.
void SimConnection::probe_later(int side) {
  End& end = ends_[side];
  if (!end.open || end.options.keepalive_idle <= Duration::zero()) return;
  world_.cancel(end.keepalive_timer);
  end.keepalive_timer =
      world_.after(end.options.keepalive_idle, [self = shared_from_this(), side] { self->bounce(side); });
}

// At the next time of the retransmission schedule.
void SimConnection::retry_later(int side) {
  End& end = ends_[side];
  if (std::exchange(end.retry_set, true)) return;
  const Instant since = end.trouble_since == kNever ? world_.now() : end.trouble_since;
  Instant when = since;
  for (Duration step = kFirstRetransmission; when <= world_.now(); step *= 2) when += step;
  world_.after(when - world_.now(), [self = shared_from_this(), side] {
    End& retrying = self->ends_[side];
    retrying.retry_set = false;
    if (retrying.open) {
      self->pump(side);
    } else if (retrying.fin_wanted) {
      self->send_fin(side);
    }
  });
}

void SimConnection::begin_trouble(int side) {
  End& end = ends_[side];
  if (end.trouble_since != kNever) return;
  end.trouble_since = world_.now();
  end.trouble_timer = world_.after(give_up_after(end.options),
                                   [self = shared_from_this(), side] { self->fail(side, timed_out()); });
}

void SimConnection::end_trouble(int side) {
  End& end = ends_[side];
  end.trouble_since = kNever;
  world_.cancel(std::exchange(end.trouble_timer, 0));
}

void SimConnection::notify_writable(int side) {
  End& end = ends_[side];
  if (!end.refused || end.host->refuses_writes() || end.pending.size() > end.options.queue_bytes_max / 2)
    return;
  end.refused = false;
  end.loop->add(world_.now(), [self = shared_from_this(), side] {
    const End& writable = self->ends_[side];
    if (writable.open && writable.handler != nullptr) writable.handler->on_writable();
  });
}

void SimConnection::writes_allowed(const SimHost& host) {
  for (int side = 0; side < 2; ++side) {
    if (ends_[side].open && ends_[side].host == &host) notify_writable(side);
  }
}

// The kernel forgets this end.
void SimConnection::close_end(int side) {
  End& end = ends_[side];
  end.open = false;
  end.pending.clear();
  end_trouble(side);
  world_.cancel(std::exchange(end.keepalive_timer, 0));
  if (side == 0) world_.cancel(std::exchange(connect_timer_, 0));
}

void SimConnection::fail(int side, const Error& reason) {
  End& end = ends_[side];
  if (!end.open) return;
  trace(side, reason.message().c_str(), 0);
  close_end(side);
  end.loop->add(world_.now(), [self = shared_from_this(), side, reason] { self->tell_closed(side, reason); });
  if (established_ && !end.fin_sent && opened(side) && opened(1 - side)) probe_later(1 - side);
  remove_if_done();
}

void SimConnection::tell_closed(int side, const Error& reason) {
  Stream::Handler* handler = std::exchange(ends_[side].handler, nullptr);
  if (handler != nullptr) handler->on_closed(reason);
}

void SimConnection::process_died(const SimLoop& loop, bool silently) {
  for (int side = 0; side < 2; ++side) {
    End& end = ends_[side];
    if (end.loop != &loop) continue;
    end.handler = nullptr;
    if (!end.open) continue;
    close_end(side);
    if (silently || !established_) continue;
    if (ends_[1 - side].in_flight > 0) {
      // A socket closed over unread bytes resets its peer. Behind a cut wire the peer's next probe finds out.
      bounce(1 - side);
    } else {
      send_fin(side);
    }
  }
  remove_if_done();
}

void SimConnection::reset() {
  fail(0, was_reset());
  fail(1, was_reset());
}

void SimConnection::remove_if_done() {
  const bool fin_to_come = (ends_[0].fin_wanted && !ends_[0].fin_sent && ends_[1].open) ||
                           (ends_[1].fin_wanted && !ends_[1].fin_sent && ends_[0].open);
  if (!ends_[0].open && !ends_[1].open && !fin_to_come) fabric_.remove(*this);
}

void SimConnection::trace(int side, const char* what, std::size_t bytes) {
  if (!world_.is_traced()) return;
  std::string line = "stream " + std::to_string(id_) + " ";
  line.append(what);
  if (bytes > 0) line += " " + std::to_string(bytes) + " bytes";
  const SimHost* other = ends_[1 - side].host;
  if (other != nullptr) line += " (" + other->name() + ")";
  world_.show(ends_[side].host->name(), line);
}

}  // namespace weft
