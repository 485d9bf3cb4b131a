#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/net/network.h"
#include "lib/random/random.h"
#include "lib/time/clock.h"

namespace weft {

class SimConnection;
class SimDatagrams;
class SimLoop;
class SimWorld;
struct SimListening;

// What one direction of a wire does to what it carries.
struct SimLink {
  Duration latency_min = std::chrono::microseconds(500);
  Duration latency_max = std::chrono::microseconds(1500);
  double tail = 0;  // Share of packets that take up to tail_max longer.
  Duration tail_max{};
  double loss = 0;       // Of packets. A stream sends again, as TCP does, and is late.
  double duplicate = 0;  // Of datagrams.
  double reorder = 0;    // Share of datagrams that come up to reorder_max later.
  Duration reorder_max = std::chrono::milliseconds(10);
  double split = 0;                    // Share of stream segments that arrive in two pieces.
  std::uint64_t bytes_per_second = 0;  // Of each stream; 0: no limit.
};

// A machine: address, name, wall clock, power. Processes (SimRuntime) run on it. Made by SimFabric.
class SimHost {
 public:
  SimHost(SimWorld& world, std::uint32_t index, std::string name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] std::uint32_t index() const { return index_; }  // 0 for the first.
  [[nodiscard]] bool is_up() const { return up_; }

  [[nodiscard]] std::int64_t wall_ms() const;
  // Wall clock ahead of (or behind) the world's.
  void set_wall_skew(Duration skew) { wall_skew_ = skew; }
  void jump_wall_clock(Duration by) { wall_skew_ += by; }

  // Fault: every write() on this host's streams is refused, as if all queues were full.
  void refuse_writes(bool on);
  [[nodiscard]] bool refuses_writes() const { return refuse_writes_; }

 private:
  friend class SimFabric;

  SimWorld& world_;
  std::uint32_t index_;
  std::string name_;
  std::string address_;
  bool up_ = true;
  bool refuse_writes_ = false;
  Duration wall_skew_{};
  std::optional<SimLink> link_;
  std::uint16_t next_port_ = 40000;
  std::map<std::uint16_t, std::shared_ptr<SimListening>> listening_;
};

// What connects the hosts of a world, and everything that can go wrong with it.
//
// A cut wire loses datagrams silently and stalls streams: their ends learn of it as with TCP, when the user
// timeout or the keepalive runs out, or never; a wire that heals in time goes on without loss.
class SimFabric {
 public:
  using CutId = std::uint64_t;
  using Hosts = std::span<SimHost* const>;

  explicit SimFabric(SimWorld& world);
  ~SimFabric();
  SimFabric(const SimFabric&) = delete;
  SimFabric& operator=(const SimFabric&) = delete;

  // The first host is 10.0.0.1. Names are unique; an empty one becomes "host-1" and so on.
  SimHost& add_host(std::string name = {});
  [[nodiscard]] SimHost* find_host(std::string_view name_or_address) const;
  [[nodiscard]] std::size_t host_count() const { return hosts_.size(); }
  [[nodiscard]] SimHost& host(std::size_t index) const { return *hosts_[index]; }

  // Wires. The more special one counts: a pair's, else a host's (its own sending side first), else all.
  void set_link(const SimLink& link) { link_ = link; }
  void set_link(SimHost& host, std::optional<SimLink> link) { host.link_ = link; }
  void set_link(const SimHost& from, const SimHost& to, std::optional<SimLink> link);
  [[nodiscard]] const SimLink& link(const SimHost& from, const SimHost& to) const;

  // Nothing gets from any of `from` to any of `to`.
  CutId cut_one_way(Hosts from, Hosts to);
  // Nothing passes between the two groups.
  CutId partition(Hosts a, Hosts b);
  // Nothing passes between `host` and all others, those still to come included.
  CutId isolate(const SimHost& host);
  void heal(CutId cut);
  void heal_all();
  [[nodiscard]] bool is_open(const SimHost& from, const SimHost& to) const {
    return from.up_ && to.up_ && (cuts_.empty() || &from == &to || !is_cut(from.index_, to.index_));
  }

  // The power is gone: peers hear nothing. The owner destroys the processes. After power_on() the machine
  // knows nothing of its old connections and resets them when somebody asks.
  void power_off(SimHost& host);
  void power_on(SimHost& host);

  // Resets every stream between the two hosts at once.
  void reset_streams(const SimHost& a, const SimHost& b);
  // Each stream between the two hosts breaks inside what is sent next on it: a part arrives, then a reset.
  void break_streams(const SimHost& a, const SimHost& b);
  [[nodiscard]] std::size_t stream_count() const { return connections_.size(); }

  [[nodiscard]] SimWorld& world() { return world_; }

  // The rest is for sockets.

  // What a name or an address means on `from`: a host, and whether it was reached as loopback.
  struct Resolved {
    SimHost* host = nullptr;
    bool loopback = false;
  };
  [[nodiscard]] Resolved resolve(const SimHost& from, std::string_view name) const;
  // How long one packet takes.
  [[nodiscard]] Duration sample_latency(const SimLink& link);
  [[nodiscard]] bool chance(double probability) { return probability > 0 && random_.uniform() < probability; }
  [[nodiscard]] std::size_t below(std::size_t bound) { return random_.below(bound); }
  [[nodiscard]] std::uint16_t ephemeral_port(SimHost& host);

  std::unique_ptr<Stream> connect(SimLoop& loop, const SocketAddress& to, const StreamOptions& options);
  Result<std::unique_ptr<StreamListener>> listen(SimLoop& loop, const SocketAddress& at,
                                                 const StreamOptions& options,
                                                 Network::AcceptCallback on_accept);
  [[nodiscard]] std::shared_ptr<SimListening> listening(const SimHost& host, std::uint16_t port) const;
  void stop_listening(SimHost& host, std::uint16_t port);
  [[nodiscard]] SimDatagrams& datagrams() { return *datagrams_; }
  // Closes all that a process has, as its kernel does when it dies; `silently` when the machine died.
  void close_all(SimLoop& loop, bool silently);
  void remove(SimConnection& connection);
  void allow_writes(const SimHost& host);

  // Buffers go round, so that a frame costs no allocation.
  [[nodiscard]] Buffer take_buffer();
  void give_buffer(Buffer buffer);

 private:
  struct Cut {
    CutId id = 0;
    std::vector<bool> from;  // By host index.
    std::vector<bool> to;
    bool both_ways = false;
    std::int64_t isolated = -1;  // The index of a host that is cut off from all others; else -1.
  };

  [[nodiscard]] bool is_cut(std::uint32_t from, std::uint32_t to) const;
  CutId add_cut(Cut cut);
  [[nodiscard]] std::vector<bool> marks(Hosts hosts) const;
  void paths_changed();
  template <typename Visit>
  void for_each_connection(Visit&& visit);

  SimWorld& world_;
  SeededRandom random_;
  std::vector<std::unique_ptr<SimHost>> hosts_;
  std::map<std::string, SimHost*, std::less<>> hosts_by_name_;  // By address too.
  SimLink link_;
  SimLink loopback_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, SimLink> pair_links_;
  std::vector<Cut> cuts_;
  CutId next_cut_ = 1;
  std::map<std::uint64_t, std::shared_ptr<SimConnection>> connections_;  // In order of making.
  std::uint64_t next_connection_ = 1;
  std::unique_ptr<SimDatagrams> datagrams_;
  std::vector<Buffer> buffers_;
};

// The error of a socket: `code` is the system's name for it ("ECONNRESET"), kept as the error's type.
[[nodiscard]] Error sim_socket_error(std::string_view code, std::string_view what);

}  // namespace weft
