#include "lib/sim/sim_fabric.h"

#include <algorithm>
#include <utility>

#include "lib/base/assert.h"
#include "lib/sim/sim_datagrams.h"
#include "lib/sim/sim_loop.h"
#include "lib/sim/sim_stream.h"
#include "lib/sim/sim_world.h"

namespace weft {

namespace {

// Wall clocks start at 2026-01-01T00:00:00Z.
constexpr std::int64_t kWallStartMs = 1767225600000;
constexpr std::size_t kBuffersKept = 1024;
constexpr std::size_t kBufferBytesKept = 64UL << 10;

std::string address_of(std::uint32_t index) {
  const std::uint32_t low = index % 254 + 1;  // No .0 and no .255.
  const std::uint32_t high = index / 254;
  return "10." + std::to_string(high / 256) + "." + std::to_string(high % 256) + "." + std::to_string(low);
}

class ListenerHandle final : public StreamListener {
 public:
  ListenerHandle(SimFabric& fabric, std::shared_ptr<SimListening> listening, std::string host)
      : fabric_(fabric), listening_(std::move(listening)), host_(std::move(host)) {}
  ~ListenerHandle() override {
    if (listening_->open) fabric_.stop_listening(*listening_->host, listening_->port);
  }
  [[nodiscard]] SocketAddress local_address() const override { return {host_, listening_->port}; }

 private:
  SimFabric& fabric_;
  std::shared_ptr<SimListening> listening_;
  std::string host_;
};

bool is_loopback(std::string_view name) {
  return name == "localhost" || name == "::1" || name.starts_with("127.");
}

}  // namespace

Error sim_socket_error(std::string_view code, std::string_view what) {
  return Error(ErrorClass::kRetryable, std::string(what) + " (" + std::string(code) + ")", code);
}

SimHost::SimHost(SimWorld& world, std::uint32_t index, std::string name)
    : world_(world), index_(index), name_(std::move(name)), address_(address_of(index)) {}

std::int64_t SimHost::wall_ms() const {
  return kWallStartMs + std::chrono::floor<std::chrono::milliseconds>(world_.elapsed() + wall_skew_).count();
}

void SimHost::refuse_writes(bool on) {
  refuse_writes_ = on;
  if (!on) world_.fabric().allow_writes(*this);
}

SimFabric::SimFabric(SimWorld& world)
    : world_(world),
      random_(world.seed() ^ 0x66616272696bULL),
      datagrams_(std::make_unique<SimDatagrams>(*this)) {
  loopback_.latency_min = std::chrono::microseconds(20);
  loopback_.latency_max = std::chrono::microseconds(60);
}

SimFabric::~SimFabric() = default;

SimHost& SimFabric::add_host(std::string name) {
  const auto index = static_cast<std::uint32_t>(hosts_.size());
  if (name.empty()) name = "host-" + std::to_string(index + 1);
  WEFT_ASSERT(hosts_by_name_.find(name) == hosts_by_name_.end());
  hosts_.push_back(std::make_unique<SimHost>(world_, index, std::move(name)));
  SimHost* host = hosts_.back().get();
  hosts_by_name_.emplace(host->name(), host);
  hosts_by_name_.emplace(host->address(), host);
  return *host;
}

SimHost* SimFabric::find_host(std::string_view name_or_address) const {
  const auto found = hosts_by_name_.find(name_or_address);
  return found == hosts_by_name_.end() ? nullptr : found->second;
}

void SimFabric::set_link(const SimHost& from, const SimHost& to, std::optional<SimLink> link) {
  const std::pair key(from.index_, to.index_);
  if (link) {
    pair_links_.insert_or_assign(key, *link);
  } else {
    pair_links_.erase(key);
  }
}

const SimLink& SimFabric::link(const SimHost& from, const SimHost& to) const {
  if (&from == &to) return loopback_;
  if (!pair_links_.empty()) {
    const auto found = pair_links_.find({from.index_, to.index_});
    if (found != pair_links_.end()) return found->second;
  }
  if (from.link_) return *from.link_;
  return to.link_ ? *to.link_ : link_;
}

std::vector<bool> SimFabric::marks(Hosts hosts) const {
  std::vector<bool> marks(hosts_.size());
  for (const SimHost* host : hosts) marks[host->index_] = true;
  return marks;
}

SimFabric::CutId SimFabric::cut_one_way(Hosts from, Hosts to) {
  return add_cut({.from = marks(from), .to = marks(to), .both_ways = false});
}

SimFabric::CutId SimFabric::partition(Hosts a, Hosts b) {
  return add_cut({.from = marks(a), .to = marks(b), .both_ways = true});
}

SimFabric::CutId SimFabric::isolate(const SimHost& host) {
  return add_cut({.from = {}, .to = {}, .both_ways = true, .isolated = host.index_});
}

SimFabric::CutId SimFabric::add_cut(Cut cut) {
  cut.id = next_cut_++;
  cuts_.push_back(std::move(cut));
  paths_changed();
  return cuts_.back().id;
}

void SimFabric::heal(CutId id) {
  if (std::erase_if(cuts_, [id](const Cut& cut) { return cut.id == id; }) > 0) paths_changed();
}

void SimFabric::heal_all() {
  cuts_.clear();
  paths_changed();
}

bool SimFabric::is_cut(std::uint32_t from, std::uint32_t to) const {
  const auto marked = [](const std::vector<bool>& marks, std::uint32_t index) {
    return index < marks.size() && marks[index];
  };
  for (const Cut& cut : cuts_) {
    if (cut.isolated == from || cut.isolated == to) return true;
    if (marked(cut.from, from) && marked(cut.to, to)) return true;
    if (cut.both_ways && marked(cut.to, from) && marked(cut.from, to)) return true;
  }
  return false;
}

void SimFabric::power_off(SimHost& host) {
  host.up_ = false;
  paths_changed();
}

void SimFabric::power_on(SimHost& host) {
  host.up_ = true;
  paths_changed();
}

template <typename Visit>
void SimFabric::for_each_connection(Visit&& visit) {
  std::vector<std::shared_ptr<SimConnection>> all;  // Visits end connections.
  all.reserve(connections_.size());
  for (const auto& [id, connection] : connections_) all.push_back(connection);
  for (const auto& connection : all) visit(*connection);
}

void SimFabric::paths_changed() {
  for_each_connection([](SimConnection& connection) { connection.path_changed(); });
}

void SimFabric::allow_writes(const SimHost& host) {
  for_each_connection([&host](SimConnection& connection) { connection.writes_allowed(host); });
}

void SimFabric::reset_streams(const SimHost& a, const SimHost& b) {
  for_each_connection([&](SimConnection& connection) {
    if (connection.is_between(a, b)) connection.reset();
  });
}

void SimFabric::break_streams(const SimHost& a, const SimHost& b) {
  for_each_connection([&](SimConnection& connection) {
    if (connection.is_between(a, b)) connection.break_next();
  });
}

SimFabric::Resolved SimFabric::resolve(const SimHost& from, std::string_view name) const {
  if (is_loopback(name)) return {hosts_[from.index_].get(), true};
  return {find_host(name), false};
}

Duration SimFabric::sample_latency(const SimLink& link) {
  Duration latency = link.latency_min;
  const Duration spread = link.latency_max - link.latency_min;
  if (spread > Duration::zero())
    latency += Duration(static_cast<Duration::rep>(random_.below(spread.count())));
  if (chance(link.tail) && link.tail_max > Duration::zero()) {
    latency += Duration(static_cast<Duration::rep>(random_.below(link.tail_max.count())));
  }
  return latency;
}

std::uint16_t SimFabric::ephemeral_port(SimHost& host) {
  // Datagram and stream ports are drawn from one row; in use by either means taken.
  do {
    host.next_port_ = host.next_port_ >= 65000 ? 40001 : static_cast<std::uint16_t>(host.next_port_ + 1);
  } while (host.listening_.contains(host.next_port_) || datagrams_->is_bound(host, host.next_port_));
  return host.next_port_;
}

std::unique_ptr<Stream> SimFabric::connect(SimLoop& loop, const SocketAddress& to,
                                           const StreamOptions& options) {
  auto connection = std::make_shared<SimConnection>(*this, next_connection_++, loop, options);
  connections_.emplace(connection->id(), connection);
  connection->start(to);
  return std::make_unique<SimStream>(std::move(connection), 0);
}

Result<std::unique_ptr<StreamListener>> SimFabric::listen(SimLoop& loop, const SocketAddress& at,
                                                          const StreamOptions& options,
                                                          Network::AcceptCallback on_accept) {
  SimHost& host = loop.host();
  if (loop.is_dead()) return sim_socket_error("ENETDOWN", "the process is dead");
  const bool loopback = is_loopback(at.host);
  const bool any = at.host.empty() || at.host == "0.0.0.0" || at.host == "::";
  if (!any && !loopback && find_host(at.host) != &host) {
    return sim_socket_error("EADDRNOTAVAIL",
                            "cannot listen on " + at.to_string() + ": no address of this host");
  }
  const std::uint16_t port = at.port != 0 ? at.port : ephemeral_port(host);
  if (host.listening_.contains(port)) {
    return sim_socket_error("EADDRINUSE", "cannot listen on " + at.to_string() + ": address already in use");
  }
  auto listening = std::make_shared<SimListening>(SimListening{.host = &host,
                                                               .loop = &loop,
                                                               .port = port,
                                                               .loopback_only = loopback,
                                                               .options = options,
                                                               .on_accept = std::move(on_accept)});
  host.listening_.emplace(port, listening);
  return std::unique_ptr<StreamListener>(
      std::make_unique<ListenerHandle>(*this, std::move(listening), at.host.empty() ? "0.0.0.0" : at.host));
}

std::shared_ptr<SimListening> SimFabric::listening(const SimHost& host, std::uint16_t port) const {
  const auto found = host.listening_.find(port);
  return found == host.listening_.end() ? nullptr : found->second;
}

void SimFabric::stop_listening(SimHost& host, std::uint16_t port) {
  const auto found = host.listening_.find(port);
  if (found == host.listening_.end()) return;
  found->second->open = false;
  host.listening_.erase(found);
}

void SimFabric::close_all(SimLoop& loop, bool silently) {
  for (auto at = loop.host().listening_.begin(); at != loop.host().listening_.end();) {
    const std::shared_ptr<SimListening> listening = (at++)->second;
    if (listening->loop == &loop) stop_listening(loop.host(), listening->port);
  }
  datagrams_->close_all(loop);
  for_each_connection([&](SimConnection& connection) { connection.process_died(loop, silently); });
}

void SimFabric::remove(SimConnection& connection) {
  connections_.erase(connection.id());
}

Buffer SimFabric::take_buffer() {
  if (buffers_.empty()) return {};
  Buffer buffer = std::move(buffers_.back());
  buffers_.pop_back();
  return buffer;
}

void SimFabric::give_buffer(Buffer buffer) {
  if (buffers_.size() >= kBuffersKept || buffer.capacity() > kBufferBytesKept) return;
  buffer.clear();
  buffers_.push_back(std::move(buffer));
}

}  // namespace weft
