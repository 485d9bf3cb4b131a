#include "transporters/memory/memory_bus.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lib/transport/subject.h"

namespace weft {

namespace {

constexpr BytesView kBalanced = "b";                     // Behind a frame that was balanced.
constexpr std::size_t kIdleMailboxBytesMax = 1UL << 20;  // A larger mailbox is given back once it is empty.

struct Item {
  PacketType type;
  bool is_undelivered;  // A notice: the bytes are the node, then the correlation.
  std::size_t offset;
  std::size_t first_bytes;
  std::size_t second_bytes;
};

// Messages one behind the other in one run of bytes: what follows a message is its read padding.
struct Mailbox {
  Buffer bytes;
  std::vector<Item> items;

  void clear() {
    bytes.clear();
    items.clear();
    if (bytes.capacity() > kIdleMailboxBytesMax) *this = Mailbox();
  }
};

}  // namespace

class MemoryBus::Member : public std::enable_shared_from_this<Member> {
 public:
  Member(const Transporter::Identity& member_identity, EventLoop& member_loop,
         Transporter::Listener& member_listener)
      : identity(member_identity), loop(&member_loop), listener(&member_listener) {}

  // The bus's mutex is held.
  void put(PacketType type, bool is_undelivered, BytesView first, BytesView second) {
    inbox.items.push_back({type, is_undelivered, inbox.bytes.size(), first.size(), second.size()});
    inbox.bytes.append(first);
    inbox.bytes.append(second);
    if (std::exchange(is_called, true)) return;
    loop->post([self = shared_from_this()] { self->read(); });
  }
  [[nodiscard]] bool has_room(std::size_t payload_bytes, std::size_t bytes_max) const {
    return inbox.bytes.empty() || inbox.bytes.size() + payload_bytes <= bytes_max;
  }

  const Transporter::Identity identity;
  EventLoop* const loop;
  Transporter::Listener* listener;  // Null once it has left. Loop thread only.
  std::mutex* bus_mutex = nullptr;  // Outlives the time when `listener` is set.
  Realm* realm = nullptr;

  // Guarded by the bus's mutex.
  Mailbox inbox;
  bool is_called = false;  // read() is posted.
  std::vector<std::string> actions;
  std::vector<BalancedEvent> events;  // With bus patterns.

 private:
  void read() {
    if (listener == nullptr) return;
    {
      const std::lock_guard lock(*bus_mutex);
      std::swap(inbox, reading_);
      is_called = false;
    }
    for (const Item& item : reading_.items) {
      if (listener == nullptr) break;
      const char* bytes = reading_.bytes.data() + item.offset;
      if (item.is_undelivered) {
        listener->on_undelivered({bytes, item.first_bytes}, {bytes + item.first_bytes, item.second_bytes});
      } else {
        listener->on_frame({.type = item.type,
                            .payload = {bytes, item.first_bytes},
                            .remote_host = {},
                            .is_balanced = item.second_bytes > 0});
      }
    }
    reading_.clear();
  }

  Mailbox reading_;  // Loop thread only.
};

struct MemoryBus::Realm {
  std::vector<MemberPtr> members;  // In order of joining.
  std::map<std::string, std::vector<MemberPtr>, std::less<>> by_node;
  std::map<std::string, std::size_t, std::less<>> request_turns;  // By action.
  std::map<std::string, std::size_t, std::less<>> event_turns;    // By group.
};

MemoryBus::MemoryBus(MemoryBusOptions options) : options_(options) {}
MemoryBus::~MemoryBus() = default;

MemoryBus::MemberPtr MemoryBus::join(const Transporter::Identity& identity, EventLoop& loop,
                                     Transporter::Listener& listener) {
  auto member = std::make_shared<Member>(identity, loop, listener);
  const std::lock_guard lock(mutex_);
  auto& realm = realms_[identity.name_space];
  if (realm == nullptr) realm = std::make_unique<Realm>();
  member->bus_mutex = &mutex_;
  member->realm = realm.get();
  realm->members.push_back(member);
  realm->by_node[identity.node_id].push_back(member);
  return member;
}

void MemoryBus::leave(const MemberPtr& member) {
  member->listener = nullptr;
  const std::lock_guard lock(mutex_);
  Realm& realm = *member->realm;
  std::erase(realm.members, member);
  const auto same_id = realm.by_node.find(member->identity.node_id);
  std::erase(same_id->second, member);
  if (same_id->second.empty()) realm.by_node.erase(same_id);
  member->realm = nullptr;
  if (realm.members.empty()) realms_.erase(member->identity.name_space);
}

Result<> MemoryBus::send(const MemberPtr& from, std::string_view node, PacketType type, BytesView payload,
                         std::string_view correlation) {
  const std::lock_guard lock(mutex_);
  const auto target = from->realm->by_node.find(node);
  if (target == from->realm->by_node.end()) {
    if (!correlation.empty()) from->put(type, true, node, correlation);
    return {};
  }
  for (const MemberPtr& member : target->second) {
    if (member->has_room(payload.size(), options_.mailbox_bytes_max)) continue;
    return Error::queue_is_full({}, node, member->inbox.bytes.size(), options_.mailbox_bytes_max);
  }
  for (const MemberPtr& member : target->second) member->put(type, false, payload, {});
  return {};
}

void MemoryBus::probe(const MemberPtr& from, std::string_view node) {
  const std::lock_guard lock(mutex_);
  if (from->realm->by_node.contains(node)) return;
  from->put(PacketType::kPing, true, node, {});
}

void MemoryBus::broadcast(const MemberPtr& from, PacketType type, BytesView payload) {
  const std::lock_guard lock(mutex_);
  for (const MemberPtr& member : from->realm->members) {
    if (member->has_room(payload.size(), options_.mailbox_bytes_max)) member->put(type, false, payload, {});
  }
}

void MemoryBus::subscribe_balanced(const MemberPtr& member, std::span<const std::string> actions,
                                   std::span<const BalancedEvent> events) {
  const std::lock_guard lock(mutex_);
  member->actions.assign(actions.begin(), actions.end());
  member->events.assign(events.begin(), events.end());
  for (BalancedEvent& event : member->events) event.pattern = event_subscription(event.pattern);
}

Result<> MemoryBus::publish_request(const MemberPtr& from, std::string_view action, BytesView payload) {
  const std::lock_guard lock(mutex_);
  Realm& realm = *from->realm;
  std::vector<MemberPtr> takers;
  for (const MemberPtr& member : realm.members) {
    if (std::find(member->actions.begin(), member->actions.end(), action) != member->actions.end()) {
      takers.push_back(member);
    }
  }
  if (takers.empty()) return {};
  return deliver_to_one(takers, realm.request_turns[std::string(action)], PacketType::kRequest, payload);
}

Result<> MemoryBus::publish_event(const MemberPtr& from, std::string_view group, std::string_view event,
                                  BytesView payload) {
  const std::lock_guard lock(mutex_);
  Realm& realm = *from->realm;
  std::vector<MemberPtr> takers;
  for (const MemberPtr& member : realm.members) {
    const bool takes =
        std::any_of(member->events.begin(), member->events.end(), [&](const BalancedEvent& subscribed) {
          return subscribed.group == group && subject_matches(subscribed.pattern, event);
        });
    if (takes) takers.push_back(member);
  }
  if (takers.empty()) return {};
  return deliver_to_one(takers, realm.event_turns[std::string(group)], PacketType::kEvent, payload);
}

Result<> MemoryBus::deliver_to_one(std::vector<MemberPtr>& candidates, std::size_t& turn, PacketType type,
                                   BytesView payload) {
  for (std::size_t tries = 0; tries < candidates.size(); ++tries) {
    Member& member = *candidates[turn++ % candidates.size()];
    if (!member.has_room(payload.size(), options_.mailbox_bytes_max)) continue;
    member.put(type, false, payload, kBalanced);
    return {};
  }
  const Member& full = *candidates.front();
  return Error::queue_is_full({}, full.identity.node_id, full.inbox.bytes.size(), options_.mailbox_bytes_max);
}

std::shared_ptr<MemoryBus> MemoryHub::bus(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto known = buses_.find(name);
  if (known != buses_.end()) return known->second;
  return buses_.emplace(std::string(name), std::make_shared<MemoryBus>()).first->second;
}

}  // namespace weft
