#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <unordered_set>
#include <vector>

#include "broker/gossip/weave/weave.h"
#include "lib/random/random.h"

namespace weft::test {

// Many Weaves and a wire, without brokers: for figures of thousands of nodes.
//
// Each message is the bytes that a weft node would send over TCP with JSON: they are counted, take their time
// on a 1 Gbit/s port, and arrive 1 ± 0.5 ms later; in order between two nodes, and the first on a link after
// a handshake. The end of a process is seen as the end of its links, and dialling it again is refused. A
// frozen process keeps its links, and reads what came when it goes on. Loss is of whole messages, which is
// worse than TCP. One seed: one run.
class WeaveSim {
 public:
  using Index = std::uint32_t;

  explicit WeaveSim(std::uint64_t seed, WeaveOptions options = {}) : options_(options), random_(seed) {}

  // A process that knows of nobody, or of `seed_node` alone.
  Index add(std::size_t info_bytes = 400);
  void join(Index node, Index seed_node);
  // `count` processes that know one another, started within the next second.
  void add_settled(std::size_t count, std::size_t info_bytes = 400);
  void change_service(Index node);
  void kill(Index node);
  // A new process under the name of a dead one.
  void restart(Index node, Index seed_node);
  void leave(Index node);
  void freeze(Index node);
  void thaw(Index node);

  struct Faults {
    double loss_in = 0;
    double loss_out = 0;
    int side = 0;  // Nodes of two sides do not reach each other.
  };
  Faults& faults(Index node) { return nodes_[node].faults; }
  // Whether its removal is right. Removals of others, dead ones aside, are counted as wrong.
  void set_faulty(Index node, bool faulty) { nodes_[node].faulty = faulty; }

  void run_for(Duration span);
  // Asks every `step`.
  [[nodiscard]] bool run_until(const std::function<bool()>& done, Duration limit,
                               Duration step = std::chrono::milliseconds(10));
  void at(Instant when, std::function<void()> what);

  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] Weave& weave(Index node) { return *nodes_[node].weave; }
  [[nodiscard]] const std::string& name(Index node) const { return nodes_[node].name; }
  [[nodiscard]] bool is_alive(Index node) const { return nodes_[node].weave != nullptr; }
  [[nodiscard]] bool is_frozen(Index node) const { return nodes_[node].frozen; }
  [[nodiscard]] bool sees(Index who, Index whom);
  // Whether each running process holds exactly the running ones online.
  [[nodiscard]] bool converged();
  [[nodiscard]] Random& random() { return random_; }

  // What nodes learned: called with each Learned and Gone.
  std::function<void(Index who, Index whom, bool online, std::uint64_t number)> on_change;

  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_; }
  [[nodiscard]] std::uint64_t messages_sent() const { return messages_sent_; }
  [[nodiscard]] std::uint64_t events_run() const { return order_; }
  [[nodiscard]] std::uint64_t wrong_removals() const { return wrong_removals_; }
  // A number that equal runs share.
  [[nodiscard]] std::uint64_t trace() const { return trace_; }

  // The times after `since` at which what `is_known` waits for came about at each running, faultless node but
  // `whom`, in order; run until all have it or `limit` is over. Missing ones count as `limit`.
  enum class Wait { kOnlineAs, kGone };
  [[nodiscard]] std::vector<Duration> spread(Index whom, Wait what, std::uint64_t number, Instant since,
                                             Duration limit);

 private:
  struct Message {
    Index from = 0;
    Buffer bytes;
    std::size_t infos = 0;
  };
  struct Node {
    std::string name;
    std::unique_ptr<SeededRandom> random;
    std::unique_ptr<Weave> weave;  // None once dead.
    std::size_t info_bytes = 0;
    std::uint64_t number = 1;
    std::uint32_t life = 0;
    bool frozen = false;
    bool faulty = false;
    Faults faults;
    Instant sends_after{};  // Its port is busy until then.
    Instant tick_at = kNever;
    std::vector<Index> links_to_us;  // Who has a connection to this process.
    std::vector<Message> unread;
  };
  struct Event {
    Instant when;
    std::uint64_t order;
    enum class Kind : std::uint8_t { kMessage, kTick, kLost, kRefused, kScript } kind;
    Index node;
    std::uint32_t what;  // A message or script, or the other node.
    bool operator>(const Event& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };

  Node& make_node(std::size_t info_bytes);
  void make_weave(Node& node);
  void start(Index node);
  void push(Instant when, Event::Kind kind, Index node, std::uint32_t what);
  void carry_out(Index node);
  void send(Index from, const Weave::Send& send);
  void deliver(Index to, Message& message);
  void run(const Event& event);
  [[nodiscard]] Duration latency();
  [[nodiscard]] Index index_of(std::string_view name) const;

  WeaveOptions options_;
  SeededRandom random_;
  Instant now_{std::chrono::seconds(1000)};
  std::vector<Node> nodes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::vector<std::function<void()>> scripts_;
  std::unordered_set<std::uint64_t> links_;  // From, to.
  std::uint64_t order_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t messages_sent_ = 0;
  std::uint64_t wrong_removals_ = 0;
  std::uint64_t trace_ = 0;
};

}  // namespace weft::test
