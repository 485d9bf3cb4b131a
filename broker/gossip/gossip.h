#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "broker/gossip/gossip_rows.h"
#include "broker/registry/node_catalog.h"
#include "lib/net/network.h"
#include "lib/protocol/packet.h"
#include "lib/random/random.h"
#include "lib/time/clock.h"

namespace weft {

struct GossipOptions {
  Duration period = std::chrono::seconds(2);
  // Nodes heard of through others are dialled by their host name, else by their first IP.
  bool use_hostname = true;
  // Peers that are told at once when something changes; they tell as many in turn.
  std::size_t fanout = 4;
  // Between two packets of our own accord to one node, and between two bursts of news.
  Duration contact_gap = std::chrono::milliseconds(200);
  Duration burst_gap = std::chrono::milliseconds(50);
  // A node that was lost is tried again each period for this long, and now and then afterwards. Then it is
  // forgotten, unless it is listed by configuration.
  Duration forget_after = std::chrono::minutes(10);
  // Nodes known at most, and rows read of one packet. What is beyond is ignored and counted.
  std::size_t nodes_max = 10'000;
  // This node takes part in the weave: among nodes that do, this gossip is the second net only.
  bool weave = false;
  // A longer answer is sent in several packets: JavaScript nodes drop connections at 1 MiB.
  std::size_t packet_bytes_max = 512UL << 10;
};

// Spreads who is in the mesh, with what, by anti-entropy with random peers, in Moleculer's packets: see
// DESIGN.md.
//
// Feed it with what comes in and with tick(); carry out take_output() in order after each. It brings the
// catalog up to date itself (nodes, their sequences, addresses and load) and says what follows from it. Same
// inputs and same seed: same outputs. Borrows catalog and random. Thread: loop thread only.
class Gossip {
 public:
  // Send `body` to each of `nodes`. It has no `ver` and `sender` yet.
  struct Send {
    std::vector<std::string> nodes;
    PacketType type;
    Value body;
  };
  // The transporter is to dial `node` there from now on.
  struct LearnAddress {
    std::string node;
    SocketAddress address;
  };
  // The catalog has taken an INFO of `outcome.node`: its services are to be registered if they changed. Until
  // then the registry points into the list that was there before; with several nodes' news in one packet it
  // looks there while it registers another of them.
  struct InfoApplied {
    InfoOutcome outcome;
    Value replaced_services;
  };
  // The catalog has marked `node` offline: its endpoints go, what waits for it fails.
  struct WentOffline {
    Node* node;
    bool unexpected;
  };
  // Our own sequence number was raised above a rumour; the catalog has it.
  struct SelfSeqRaised {
    std::uint64_t seq;
  };
  // The catalog has dropped a node that was offline for long.
  struct Forgotten {
    std::string node;
  };
  using Output = std::variant<Send, LearnAddress, InfoApplied, WentOffline, SelfSeqRaised, Forgotten>;

  // Who says that a node is there.
  enum class Sighting : std::uint8_t {
    kListed,     // The configuration, once: never forgotten.
    kAnnounced,  // The node itself, time and again while it lives (datagrams).
  };

  struct Stats {
    std::uint64_t rows_ignored = 0;     // Of wrong type or form, or too many.
    std::uint64_t packets_ignored = 0;  // From unknown or impossible senders.
    std::uint64_t rumours_refuted = 0;  // Of our own death.
  };

  Gossip(NodeCatalog& catalog, const GossipOptions& options, Random& random);
  // Whether a node was heard of directly a moment ago: then others' word that it is offline is not believed.
  void set_witness(std::function<bool(const Node&)> heard_lately) { heard_lately_ = std::move(heard_lately); }

  // The transporter listens: `self` of the catalog is complete. The first period begins.
  void start(Instant now);

  // GOSSIP_HELLO's body opens every connection we make.
  [[nodiscard]] Value hello() const;

  // A gossip packet of another node. `remote_host` is where a HELLO's connection came from.
  void receive(PacketType type, std::string_view sender, const Value& body, std::string_view remote_host,
               Instant now);
  void sighted(std::string_view node, const SocketAddress& address, Sighting kind, Instant now);
  // The link to `node` broke or could not be made.
  void node_lost(std::string_view node, bool unexpected, Instant now);
  // What the weave found out: `id` is there as `number`, with `info`, or (null) with what is known of it; or
  // it is gone.
  void weave_learned(std::string_view id, std::uint64_t number, const Value* info, Instant now);
  void weave_gone(std::string_view id, std::uint64_t number, Instant now);
  // Others have removed us, and the weave does not want us back yet: nobody is answered about us.
  void set_held_back(bool on) { held_back_ = on; }
  // Whether `node` takes part in the weave, as this node does.
  [[nodiscard]] bool in_weave(const Node& node) const;

  // `node` does not answer, though its link stands.
  void node_hung(std::string_view node, Instant now);
  // Our service list is another one, and our sequence was raised.
  void local_changed(Instant now);
  // The same, and it is empty: nobody is to choose us any more, so all are told, and at once.
  void leaving(Instant now);
  // Our processors' load, in percent.
  void local_cpu(int percent);

  void tick(Instant now);
  // When tick() has something to do; kNever before start().
  [[nodiscard]] Instant next_tick() const;

  [[nodiscard]] std::vector<Output> take_output() { return std::move(output_); }
  [[nodiscard]] const Stats& stats() const { return stats_; }

 private:
  // What gossip knows of another node besides the catalog.
  struct Peer {
    std::optional<Instant> contacted;  // Our last GOSSIP_REQ to it.
    std::optional<Instant> due;        // The next one, held back by contact_gap.
    bool due_if_offline = true;        // It is for getting it back: pointless once it is online.
    bool listed = false;
    int failures = 0;           // Contacts in vain since it was online.
    bool failed_since = false;  // The last contact was in vain.
    std::size_t turn = 0;       // Which of its addresses is dialled.
    SocketAddress learned;      // Told to the transporter.
  };
  enum class Reason : std::uint8_t { kOffline, kNews };
  class Answer;

  void receive_hello(Node* node, std::string_view sender, const Value& body, std::string_view remote_host,
                     Instant now);
  void receive_request(Node& requester, const Value& body, Instant now);
  void receive_response(std::string_view sender, const Value& body, Instant now);

  // One row of a request: tells the requester what it should know of `node`, or learns from it.
  void compare(Node& node, const GossipDigest::Row* row, Node& requester, Answer& answer, Instant now);
  void compare_self(const GossipDigest::Row* row, std::string_view requester, Answer& answer);
  // True if the catalog took it.
  bool take_info(std::string_view id, const GossipNews& news, std::string_view sender, Instant now);
  [[nodiscard]] bool weave_decides(const Node& node, const Node& teller) const;
  void go_offline(Node& node, bool unexpected, Instant now);
  static void take_cpu(Node& node, const CpuRow& row);

  // The node, added if there is room for it.
  Node* find_or_sight(std::string_view id, Instant now);
  bool has_room(Instant now);
  void forget_offline_since(Instant latest);
  void learn_address(const Node& node);
  void see_at(Node& node, std::string_view host);
  [[nodiscard]] SocketAddress address_of(const Node& node) const;
  Peer& peer(const Node& node) { return peers_[node.id]; }
  [[nodiscard]] bool is_vouched_for(const Node& node) const {
    return node.available && heard_lately_ && heard_lately_(node);
  }

  // Sends it a GOSSIP_REQ at the end of this input, or as soon as contact_gap allows.
  void contact(const Node& node, Reason reason, Instant now, Duration delay = Duration::zero());
  // Tells others of `id`, whom `source` told us, with the next burst.
  void spread(std::string_view id, std::string_view source);
  void burst(Instant now);
  void send_news(bool of_weave);
  void run_period(Instant now);
  void contact_offline(std::vector<const Node*> recent, const std::vector<const Node*>& old,
                       std::size_t online_count, Instant now);
  // Ends an input: sends what it asked for.
  void finish(Instant now);

  [[nodiscard]] Value request_body();

  NodeCatalog& catalog_;
  GossipOptions options_;
  Random& random_;
  std::function<bool(const Node&)> heard_lately_;
  std::map<std::string, Peer, std::less<>> peers_;
  std::vector<Output> output_;
  Stats stats_;

  Instant next_period_ = kNever;
  Instant next_weave_round_{};  // Of gossip with nodes of the weave.
  bool held_back_ = false;
  Instant earliest_due_ = kNever;                         // Of peers_; may be too early.
  std::set<std::string, std::less<>> to_contact_;         // At the end of this input.
  std::map<std::string, std::string, std::less<>> news_;  // Node → who told us.
  std::optional<Instant> last_burst_;
  bool is_leaving_ = false;
  std::optional<Instant> full_until_;  // There was no room, and looking again is not worth it before.
};

}  // namespace weft
