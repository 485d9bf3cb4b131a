#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/buffer.h"
#include "lib/loop/event_loop.h"
#include "lib/transport/transporter.h"

namespace weft {

struct MemoryBusOptions {
  // What may wait for one member that does not come to read. Above it, what has one target is refused, and
  // the member misses broadcasts.
  std::size_t mailbox_bytes_max = 64UL << 20;
};

// A message bus inside one process: what a NATS server is between processes.
//
// Every MemoryTransporter over it is a member of a namespace. A message is copied into the mailbox of each
// receiver and handed over in a later turn of that receiver's loop. When all members share a loop, a run is a
// pure function of its calls.
//
// Ownership: shared by its members. Thread: any; members post to each other's loops.
class MemoryBus {
 public:
  explicit MemoryBus(MemoryBusOptions options = {});
  ~MemoryBus();
  MemoryBus(const MemoryBus&) = delete;
  MemoryBus& operator=(const MemoryBus&) = delete;

  class Member;
  using MemberPtr = std::shared_ptr<Member>;

  // Adds a member; its listener hears of messages from now on, on `loop`, until leave(). Two members of one
  // node ID both get what is sent to it.
  [[nodiscard]] MemberPtr join(const Transporter::Identity& identity, EventLoop& loop,
                               Transporter::Listener& listener);
  // On the member's loop. Nothing is heard, and its loop and listener are not used, afterwards.
  void leave(const MemberPtr& member);

  // Below, `from` is the sender.
  [[nodiscard]] Result<> send(const MemberPtr& from, std::string_view node, PacketType type,
                              BytesView payload, std::string_view correlation);
  // Tells `from` that `node` is not there, if so.
  void probe(const MemberPtr& from, std::string_view node);
  // All members of the namespace get it, the sender too.
  void broadcast(const MemberPtr& from, PacketType type, BytesView payload);
  void subscribe_balanced(const MemberPtr& member, std::span<const std::string> actions,
                          std::span<const BalancedEvent> events);
  [[nodiscard]] Result<> publish_request(const MemberPtr& from, std::string_view action, BytesView payload);
  [[nodiscard]] Result<> publish_event(const MemberPtr& from, std::string_view group, std::string_view event,
                                       BytesView payload);

 private:
  struct Realm;  // The members of one namespace.

  Result<> deliver_to_one(std::vector<MemberPtr>& candidates, std::size_t& turn, PacketType type,
                          BytesView payload);

  const MemoryBusOptions options_;
  std::mutex mutex_;  // Guards the realms and all mailboxes.
  std::map<std::string, std::unique_ptr<Realm>, std::less<>> realms_;
};

// Buses by name: "memory://name" is the same bus wherever the same hub is used. Thread: any.
class MemoryHub {
 public:
  [[nodiscard]] std::shared_ptr<MemoryBus> bus(std::string_view name);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<MemoryBus>, std::less<>> buses_;
};

}  // namespace weft
