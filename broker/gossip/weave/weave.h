#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "broker/gossip/weave/message.h"
#include "broker/gossip/weave/roster.h"
#include "lib/base/buffer.h"
#include "lib/random/random.h"
#include "lib/time/clock.h"

namespace weft {

struct WeaveOptions {
  // Each subject is asked once a period whether it lives, and has this long to answer; longer while this node
  // has reasons to doubt itself.
  Duration probe_period = std::chrono::seconds(1);
  Duration probe_timeout = std::chrono::milliseconds(700);
  // Between two bursts of news. A single piece of news goes out at once.
  Duration burst_gap = std::chrono::milliseconds(20);
  // How long a node that was removed has to find everything in order before it comes back: when it looks as
  // if only one direction of its links worked; and when it was removed lately. Both double each time.
  Duration one_way_quarantine = std::chrono::seconds(30);
  Duration repeat_quarantine = std::chrono::seconds(10);
  std::size_t nodes_max = 10'000;
  // INFOs of one message together; one always goes.
  std::size_t infos_bytes_max = 128UL << 10;
};

// Membership among weft nodes: spreads who is there and with what over a few kept links, watches whether they
// live, and lets several agree before one is removed. See DESIGN.md.
//
// Feed it with what comes in and with tick(); carry out take_output() in order after each. It sees INFOs as
// numbers alone: the owner has them, sends them beside the bytes and reads them. Same inputs and same random
// numbers: same outputs. Borrows random. Thread: loop thread only.
class Weave {
 public:
  // Send `bytes` to `node`, with the INFOs of `infos` beside them, in order.
  struct Send {
    std::string node;
    Buffer bytes;
    std::vector<std::string> infos;
  };
  // `node` is there, as `number`. Its INFO is the one at `info` of the message that was received, or the one
  // that the owner has (kKnownInfo), with another number.
  static constexpr std::size_t kKnownInfo = SIZE_MAX;
  struct Learned {
    std::string node;
    std::uint64_t number;
    std::size_t info;
  };
  // `node` is not there any more; its number is `number` now.
  struct Gone {
    std::string node;
    std::uint64_t number;
    bool left;  // By its own word.
  };
  // Others had removed this node, or remembered an earlier life of it. It is there again as `number`.
  struct Returned {
    std::uint64_t number;
  };
  using Output = std::variant<Send, Learned, Gone, Returned>;

  struct Stats {
    std::uint64_t messages_ignored = 0;  // Bytes that are none.
    std::uint64_t accusations = 0;       // Made by this node.
    std::uint64_t removals = 0;          // Decided by this node.
    std::uint64_t late = 0;              // Times this node was held up.
    std::uint64_t absences = 0;          // Times others had removed it.
    std::uint64_t syncs = 0;
  };

  Weave(std::string_view self, std::string_view instance_id, const WeaveOptions& options, Random& random);

  void start(Instant now);
  // This node's INFO is another one, of this number.
  void local_changed(std::uint64_t number, std::size_t info_bytes, Instant now);
  // Tells everyone that this node leaves; nothing happens afterwards.
  void leave(Instant now);

  // There is said to be a node of this name: asks it who it is.
  void meet(std::string_view node, Instant now);
  // The owner has learned by other ways that a node takes part, or that it is gone for sure. `is_news`:
  // others may not know yet.
  void learn(std::string_view node, std::uint64_t number, std::string_view instance_id,
             std::size_t info_bytes, bool is_news, Instant now);
  void learn_gone(std::string_view node, std::uint64_t number, bool left, Instant now);
  void forget(std::string_view node);

  // The link to `node` broke or could not be made. `refused`: nobody listens where it should. A process whose
  // link breaks and that then cannot be dialled is gone; everything else may be a matter of the way there.
  void link_lost(std::string_view node, bool refused, Instant now);
  // `infos`: how many came beside the bytes.
  void receive(std::string_view from, BytesView bytes, std::size_t infos, Instant now);
  void tick(Instant now);
  // When tick() has something to do; kNever before start() and after leave().
  [[nodiscard]] Instant next_tick() const;
  [[nodiscard]] std::vector<Output> take_output() { return std::move(output_); }

  [[nodiscard]] bool knows(std::string_view node) const { return roster_.find(node) != Roster::kNone; }
  // Whether others have removed this node and it is proving that it may come back.
  [[nodiscard]] bool is_absent() const { return absence_.has_value(); }
  [[nodiscard]] const Roster& roster() const { return roster_; }
  [[nodiscard]] const Stats& stats() const { return stats_; }

  [[nodiscard]] static std::uint32_t instance_of(std::string_view instance_id);

 private:
  // What an observer holds of a subject.
  struct Watch {
    std::uint32_t subject = Roster::kNone;
    std::uint32_t nonce = 0;
    std::uint32_t nonce_before = 0;
    Instant next_probe{};
    Instant sent{};
    Instant deadline = kNever;            // Of the probe under way.
    std::optional<Instant> silent_since;  // When the first probe left that was not answered.
    std::optional<Instant> accused_since;
    Instant accused_last{};
    Instant decide_at = kNever;                 // When the silence has lasted long enough.
    std::map<std::uint32_t, Instant> accusers;  // Other observers, and when they said so last.
  };
  struct Absence {         // No defaults: an optional of it is a member here.
    std::uint64_t number;  // What others hold of us.
    Instant begun;
    Instant clean_since;
    int clean_probes;
    Duration quarantine;
  };
  struct Want {
    WeaveHead head;  // Its name is the roster's.
    std::vector<std::uint32_t> sources;
    std::size_t next_source = 0;
    std::optional<Instant> asked;
  };
  struct Sync {
    std::uint32_t peer;
    std::uint64_t todo;  // Buckets still to be fetched.
    Instant waiting_since;
  };
  struct News {
    std::uint32_t subject;
    std::uint32_t source;
  };

  // weave.cpp: what is known, and telling it on.
  void take(const WeaveHead& head, std::uint32_t from, Instant now);
  void take_own(const WeaveHead& head, Duration heard_for, Instant now);
  void take_note(std::uint32_t from, const WeaveMessage::Note& note, Instant now);
  [[nodiscard]] bool holds_offline(std::uint32_t member) const {
    return !roster_.at(member).online && roster_.at(member).number > 0;
  }
  void go_online(std::uint32_t member, const WeaveHead& head, std::size_t info, std::uint32_t from);
  void go_offline(std::uint32_t member, std::uint64_t number, bool left, std::uint32_t from, Instant now);
  void raise_own(std::uint64_t number, Instant now);
  void tell(std::uint32_t subject, std::uint32_t source) { news_.push_back({subject, source}); }
  void flush_news(Instant now);
  [[nodiscard]] std::uint32_t find_or_add(std::string_view name);
  // What is to be sent to a member at the end of this input, in one message.
  WeaveMessage& message_to(std::uint32_t member) { return outbox_[member]; }
  void begin(Instant now);
  void finish(Instant now);

  // watch.cpp: who lives.
  void sync_watches(Instant now);
  Watch* watch_of(std::uint32_t subject);
  void probe(Watch& watch, Instant now);
  void on_ping(std::uint32_t from, const WeaveMessage::Ping& ping, Instant now);
  void on_pong(std::uint32_t from, const WeaveMessage::Pong& pong, Instant now);
  void on_accusation(std::uint32_t from, const WeaveMessage::Doubt& doubt, Instant now);
  void on_voucher(const WeaveMessage::Doubt& doubt);
  void on_silence(Watch& watch, Instant now);
  void review(Watch& watch, Instant now);
  void decide(Watch& watch, Instant now);
  void remove(std::uint32_t member, Instant now);
  [[nodiscard]] bool trusts_itself(const Watch& about) const;
  [[nodiscard]] Duration timeout() const;
  void doubt_itself(int by);
  void note_late(Instant now);
  void tick_watches(Instant now);
  void retry_lost(Instant now);
  void note_to(std::uint32_t member, Duration heard_for);

  void begin_absence(std::uint64_t number, Duration heard_for, Instant now);
  void check_absence(Instant now);

  // sync.cpp: catching up.
  void want(std::uint32_t member, const WeaveHead& head, std::uint32_t from);
  void pump_wants(Instant now);
  void tick_wants(Instant now);
  void on_wants(std::uint32_t from, const std::vector<std::string_view>& names);
  void on_infos(std::uint32_t from, const std::vector<WeaveHead>& heads, std::size_t infos, Instant now);
  void compare_sum(std::uint32_t from, std::uint64_t sum, Instant now);
  void on_sums(std::uint32_t from, const WeaveSums& sums);
  void on_differing(std::uint32_t from, std::uint64_t which, Instant now);
  void on_get(std::uint32_t from, std::uint64_t which, Instant now);
  void on_buckets(std::uint32_t from, const WeaveMessage::Buckets& buckets, Instant now);
  void fetch_next(Instant now);

  WeaveOptions options_;
  Random& random_;
  Roster roster_;
  Stats stats_;
  std::vector<Output> output_;
  std::map<std::uint32_t, WeaveMessage> outbox_;  // Names in it are the roster's, or of the input.
  std::map<std::uint32_t, std::vector<std::uint32_t>> infos_out_;  // Wanted of us in this input.
  bool running_ = false;
  Instant due_ = kNever;  // What next_tick() said last: coming much later means that we were held up.

  std::vector<News> news_;
  Instant last_burst_{};
  Instant last_change_{};

  std::vector<Watch> watches_;
  std::uint64_t watched_version_ = 0;
  std::uint32_t nonce_ = 0;
  int strain_ = 0;                                  // Reasons to doubt itself, 0 to kStrainMax.
  std::map<std::uint32_t, Instant> link_broke_;     // Lately.
  std::map<std::uint32_t, Instant> heard_offline_;  // Held offline, and speaking since.
  Instant next_retry_ = kNever;

  std::optional<Instant> accused_;  // When others doubted us first, lately.
  Instant last_heard_{};            // Anything, of anybody.
  Instant silence_ended_{};         // When this node heard something again after it had heard nothing.
  Instant awake_since_{};           // When this node was held up last.
  std::optional<Absence> absence_;
  std::deque<Instant> removals_;  // Of this node, lately.

  std::map<std::uint32_t, Want> wants_;
  std::deque<std::uint32_t> want_queue_;  // Not asked for yet.
  std::vector<std::uint32_t> asked_;
  std::optional<Sync> sync_;
  std::optional<Instant> mismatch_since_;
  Instant last_sync_{};
  bool caught_up_ = false;
};

}  // namespace weft
