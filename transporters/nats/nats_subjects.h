#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lib/protocol/packet.h"

namespace weft {

// The subjects of one namespace, ready to be handed to the client library.
//
// Remembers the subjects of each node, so that a frame costs one look-up. Names come from peers: one that
// cannot be part of a subject gets none.
class NatsSubjects {
 public:
  explicit NatsSubjects(std::string_view name_space);

  // MOL.<TYPE>.<node>; null when `node` cannot be part of a subject. Valid until the next call.
  [[nodiscard]] const char* targeted(PacketType type, std::string_view node);
  // MOL.*.<node>: every type at once. `node` must be able to be part of a subject.
  [[nodiscard]] std::string any_targeted(std::string_view node) const;
  // MOL.<TYPE>.
  [[nodiscard]] const char* broadcast(PacketType type) const;
  // MOL.REQB.<action>, MOL.EVENTB.<group>.<event>; null as above. Valid until the next call.
  [[nodiscard]] const char* balanced_request(std::string_view action);
  [[nodiscard]] const char* balanced_event(std::string_view group, std::string_view event);
  // The subscription for `pattern`, see event_subscription(); empty when it is none.
  [[nodiscard]] std::string balanced_event_subscription(std::string_view group,
                                                        std::string_view pattern) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using OfTypes = std::array<std::string, kPacketTypeCount>;

  const std::string prefix_;  // "MOL" or "MOL-<namespace>".
  OfTypes broadcast_;
  std::unordered_map<std::string, OfTypes, Hash, std::equal_to<>> targeted_;
  std::string scratch_;
};

// Subjects under which the server and we talk about our own messages: "<inbox>.r.<node>.<correlation>" is the
// reply subject of a frame, "<inbox>.p.<node>" that of a probe, "<inbox>.e.<number>" an echo to ourselves.
class NatsInbox {
 public:
  // `token` is unique to the connection.
  explicit NatsInbox(std::string_view token) : prefix_("_INBOX." + std::string(token) + ".") {}

  [[nodiscard]] std::string subscription() const { return prefix_ + ">"; }
  // Null when `correlation` cannot be the last token. `node` is good: it has a subject. Valid until the next
  // call.
  [[nodiscard]] const char* reply(std::string_view node, std::string_view correlation);
  [[nodiscard]] const char* probe(std::string_view node);
  [[nodiscard]] const char* echo(std::uint64_t number);

  struct Parsed {
    char kind = 0;                 // 'r', 'p' or 'e'.
    std::string_view node;         // Of r and p.
    std::string_view correlation;  // Of r.
    std::uint64_t number = 0;      // Of e.
  };
  // What one of our subjects says; views into `subject`.
  [[nodiscard]] std::optional<Parsed> parse(std::string_view subject) const;

 private:
  const std::string prefix_;
  std::string scratch_;
};

}  // namespace weft
