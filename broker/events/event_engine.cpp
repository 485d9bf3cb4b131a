#include "broker/events/event_engine.h"

#include <algorithm>
#include <map>

#include "broker/broker.h"
#include "broker/context_access.h"

namespace weft {

namespace {

bool allows(std::span<const std::string_view> groups, std::string_view group) {
  return groups.empty() || std::find(groups.begin(), groups.end(), group) != groups.end();
}

Payload groups_payload(std::span<const std::string_view> groups) {
  if (groups.empty()) return {};
  Value list = Value::array();
  for (const std::string_view group : groups) list.push_back(group);
  return Payload(std::move(list));
}

// The matching event lists of one group.
struct GroupLists {
  std::string_view group;
  std::vector<EventList*> lists;
};

std::vector<GroupLists> by_group(const std::vector<EventList*>& lists,
                                 std::span<const std::string_view> groups) {
  std::vector<GroupLists> grouped;
  for (EventList* list : lists) {
    if (!allows(groups, list->group) || list->available.empty()) continue;
    const auto same =
        std::find_if(grouped.begin(), grouped.end(), [&](const auto& g) { return g.group == list->group; });
    if (same != grouped.end()) {
      same->lists.push_back(list);
    } else {
      grouped.push_back({list->group, {list}});
    }
  }
  return grouped;
}

bool has_node(const EventList& list, const Node* node) {
  return std::any_of(list.available.begin(), list.available.end(),
                     [&](const Endpoint* e) { return e->node == node; });
}

}  // namespace

void EventEngine::send(EventType type, std::string_view event, Params&& params, const EventOptions& options,
                       Context* parent) {
  Payload payload = std::move(params).take();
  if (payload.is_absent()) payload = Payload(Value());
  if (event.starts_with('$')) parts_.local_bus.publish(event, payload.value());

  Payload meta;
  if (parent != nullptr) {
    meta = ContextAccess(*parent).meta_below(options.meta);
  } else if (options.meta != nullptr) {
    meta = Payload(*options.meta);
  }
  const std::string id = parts_.broker.make_id();
  std::string_view caller = options.caller;
  if (caller.empty() && parent != nullptr && parent->service() != nullptr)
    caller = parent->service()->full_name();
  std::string_view request_id = options.request_id;
  if (request_id.empty()) request_id = parent != nullptr ? parent->request_id() : std::string_view(id);
  Delivery delivery{.type = type,
                    .event = event,
                    .data = payload,
                    .groups = groups_payload(options.groups),
                    .meta = meta,
                    .headers = options.headers != nullptr ? Payload(*options.headers) : Payload(),
                    .id = id,
                    .request_id = request_id,
                    .parent_id = parent != nullptr ? parent->id() : std::string_view(),
                    .caller = caller,
                    .sender = parts_.registry.nodes().self().id,
                    .level = parent != nullptr ? next_level(parent->level()) : 1,
                    .tracing = parent != nullptr ? parent->tracing() : std::nullopt};
  switch (type) {
    case EventType::kEmit:
      if (parts_.balanced_by_transporter && parts_.sender != nullptr && !event.starts_with('$')) {
        return emit_balanced(delivery, options.groups);
      }
      return emit(delivery, options.groups);
    case EventType::kBroadcast:
      return broadcast(delivery, options.groups);
    case EventType::kBroadcastLocal:
      return broadcast_local(delivery, options.groups);
  }
}

void EventEngine::emit(Delivery& delivery, std::span<const std::string_view> groups) {
  const Selection selection{delivery.data, delivery.meta, parts_.loop.now()};
  std::map<std::string_view, std::pair<Node*, Value>>
      remote;  // Node → the groups it is to serve, in order of names.
  std::vector<std::shared_ptr<LocalSubscription>> local;

  for (const GroupLists& group : by_group(parts_.registry.match_event(delivery.event), groups)) {
    // One node that subscribes by every matching pattern serves the group with one packet. Where no node
    // does, each pattern gets a node, but none that would run a pattern already served.
    std::vector<EventList*> open = group.lists;
    std::vector<Node*> served_by;
    while (!open.empty()) {
      std::vector<const Endpoint*> candidates;
      for (const Endpoint* endpoint : open.front()->available) {
        const bool covers_all =
            std::all_of(open.begin(), open.end(), [&](EventList* l) { return has_node(*l, endpoint->node); });
        if (covers_all) candidates.push_back(endpoint);
      }
      EventEndpoint* chosen = nullptr;
      if (candidates.size() == open.front()->available.size() || candidates.empty()) {
        chosen = parts_.registry.pick_event(*open.front(), selection);
      } else {
        const auto is_remote = [](const Endpoint* e) { return !e->local; };
        if (parts_.registry.prefers_local() && !std::all_of(candidates.begin(), candidates.end(), is_remote))
          std::erase_if(candidates, is_remote);
        chosen = parts_.registry.pick_event_among(*open.front(), candidates, selection);
      }
      if (chosen == nullptr) break;
      Node* node = chosen->node;
      const bool is_repeat = std::find(served_by.begin(), served_by.end(), node) != served_by.end();
      served_by.push_back(node);
      if (node->local) {
        for (EventList* list : open) {
          if (!has_node(*list, node)) continue;
          const auto* endpoint = list == open.front() ? chosen : parts_.registry.pick_local(*list, selection);
          if (endpoint != nullptr) local.push_back(endpoint->subscription);
        }
      } else if (!is_repeat) {
        auto& entry = remote[node->id];
        entry.first = node;
        if (entry.second.is_null()) entry.second = Value::array();
        entry.second.push_back(group.group);
      }
      std::erase_if(open, [node](EventList* list) { return has_node(*list, node); });
    }
  }
  for (const auto& subscription : local) run(subscription, delivery);
  for (auto& [node_id, entry] : remote) {
    const std::string id = parts_.broker.make_id();  // The packet holds a view.
    const EventPacket packet = packet_of(delivery, Payload(std::move(entry.second)), false, id);
    if (auto sent = parts_.sender->send_event(node_id, packet); !sent) {
      parts_.log.warn("Event '", delivery.event, "' was not sent to '", node_id,
                      "': ", sent.error().message());
    }
  }
}

void EventEngine::emit_balanced(Delivery& delivery, std::span<const std::string_view> groups) {
  std::vector<std::string> names(groups.begin(), groups.end());
  if (names.empty()) {
    for (const GroupLists& group : by_group(parts_.registry.match_event(delivery.event), {}))
      names.emplace_back(group.group);
  }
  for (const std::string& name : names) {
    const EventPacket packet = packet_of(delivery, Payload(arr(name)), false, delivery.id);
    if (auto sent = parts_.sender->send_balanced_event(name, packet); !sent) {
      parts_.log.warn("Event '", delivery.event, "' was not sent to group '", name,
                      "': ", sent.error().message());
    }
  }
}

void EventEngine::broadcast(Delivery& delivery, std::span<const std::string_view> groups) {
  std::map<std::string_view, Node*> remote;
  for (EventList* list : parts_.registry.match_event(delivery.event)) {
    if (!allows(groups, list->group)) continue;
    for (const Endpoint* endpoint : list->available) {
      if (!endpoint->local) remote.emplace(endpoint->node->id, endpoint->node);
    }
  }
  for (const auto& [node_id, node] : remote) {
    const std::string id = parts_.broker.make_id();
    const EventPacket packet = packet_of(delivery, delivery.groups, true, id);
    if (auto sent = parts_.sender->send_event(node_id, packet); !sent) {
      parts_.log.warn("Event '", delivery.event, "' was not sent to '", node_id,
                      "': ", sent.error().message());
    }
  }
  delivery.type = EventType::kBroadcastLocal;  // What a local receiver of a broadcast sees.
  broadcast_local(delivery, groups);
}

void EventEngine::broadcast_local(const Delivery& delivery, std::span<const std::string_view> groups,
                                  bool served) {
  std::vector<std::shared_ptr<LocalSubscription>> receivers;  // Handlers may change the registry.
  for (EventList* list : parts_.registry.match_local(delivery.event)) {
    if (!allows(groups, list->group)) continue;
    for (const auto& endpoint : list->endpoints) {
      if (endpoint->local) receivers.push_back(endpoint->subscription);
    }
  }
  for (const auto& subscription : receivers) run(subscription, delivery, served);
}

EventPacket EventEngine::packet_of(const Delivery& delivery, Payload groups, bool is_broadcast,
                                   std::string_view id) {
  EventPacket packet;
  packet.id = id;
  packet.event = delivery.event;
  packet.data = delivery.data;
  packet.groups = std::move(groups);
  packet.broadcast = is_broadcast;
  packet.meta = delivery.meta;
  packet.headers = delivery.headers;
  packet.level = delivery.level;
  packet.tracing = delivery.tracing;
  packet.parent_id = delivery.parent_id;
  packet.request_id = delivery.request_id;
  packet.caller = delivery.caller;
  return packet;
}

void EventEngine::receive(const EventPacket& packet, bool is_balanced) {
  if (packet.event.size() > kNameBytesMax) {
    if (dropped_.pass(parts_.loop.now())) {
      parts_.log.warn("An event of node '", packet.sender, "' is dropped, as are ", dropped_.take_held(),
                      " others: its name has ", packet.event.size(), " bytes, allowed are ", kNameBytesMax,
                      ".");
    }
    return;
  }
  std::vector<std::string_view> groups;
  const Result<Value> named = packet.groups.to_value();
  if (named) {
    for (const Value& group : (*named).items()) {
      if (group.is_string()) groups.push_back(group.str());
    }
  }
  const Delivery delivery{.type = packet.broadcast ? EventType::kBroadcast : EventType::kEmit,
                          .event = packet.event,
                          .data = packet.data,
                          .groups = groups_payload(groups),
                          .meta = packet.meta,
                          .headers = packet.headers,
                          .id = packet.id,
                          .request_id = packet.request_id,
                          .parent_id = packet.parent_id,
                          .caller = packet.caller,
                          .sender = packet.sender,
                          .level = packet.level,
                          .tracing = packet.tracing};
  if (packet.broadcast) return broadcast_local(delivery, groups, true);
  std::vector<std::shared_ptr<LocalSubscription>> receivers;
  for (EventList* list : parts_.registry.match_local(packet.event)) {
    if (!allows(groups, list->group)) continue;
    if (auto* endpoint = parts_.registry.pick_local(*list, {packet.data, packet.meta, parts_.loop.now()})) {
      receivers.push_back(endpoint->subscription);
    }
  }
  if (receivers.empty() && is_balanced) return hand_on(packet, groups);
  for (const auto& subscription : receivers) run(subscription, delivery, true);
}

// To the node itself, so it is not handed on again.
void EventEngine::hand_on(const EventPacket& packet, std::span<const std::string_view> groups) {
  if (groups.size() != 1) return;  // For which one it came is not known.
  for (const GroupLists& group : by_group(parts_.registry.match_event(packet.event), groups)) {
    const EventEndpoint* chosen =
        parts_.registry.pick_event(*group.lists.front(), {packet.data, packet.meta});
    if (chosen == nullptr || chosen->local) continue;
    if (auto sent = parts_.sender->forward_event(chosen->node->id, packet); !sent) {
      parts_.log.warn("Event '", packet.event, "' was not handed on to '", chosen->node->id,
                      "': ", sent.error().message());
    }
  }
}

void EventEngine::fill(Context& context, const Delivery& delivery) {
  ContextAccess access(context);
  access.set_event(delivery.event, delivery.type, delivery.groups);
  access.set_meta(delivery.meta);
  access.set_headers(delivery.headers);
  access.set_id(delivery.id);
  access.set_request_id(delivery.request_id);
  access.set_parent_id(delivery.parent_id);
  access.set_caller(delivery.caller);
  access.set_node_id(delivery.sender);
  access.set_level(delivery.level);
  access.set_tracing(delivery.tracing);
  context.params = delivery.data;
}

void EventEngine::run(const std::shared_ptr<LocalSubscription>& subscription, const Delivery& delivery,
                      bool served) {
  Handler& handler = subscription->handler();
  if (!handler.is_coroutine()) {
    Context context(parts_.broker, &subscription->service());
    fill(context, delivery);
    if (auto result = Dispatcher::invoke(handler, context); !result)
      note_failure(*subscription, delivery.event, result.error());
    return;
  }
  const std::size_t bytes = parts_.serializer != nullptr ? delivery.data.raw(*parts_.serializer).size() : 0;
  if (served && !parts_.load.take(bytes)) {
    if (dropped_.pass(parts_.loop.now())) {
      parts_.log.warn("Event '", delivery.event, "' of node '", delivery.sender, "' is dropped, as are ",
                      dropped_.take_held(), " others: ", parts_.load.count(),
                      " handlers run for other nodes (options transit.served_max and served_bytes_max).");
    }
    return;
  }
  std::unique_ptr<Run> started = parts_.dispatcher.make_run(&subscription->service());
  fill(started->context, delivery);
  ContextAccess(started->context).retain();
  started->handler = std::shared_ptr<Handler>(subscription, &handler);
  started->keep = subscription;
  started->queue = subscription->queue();
  started->done = [this, subscription, served, bytes](Run& ended, Result<Payload> result) {
    if (served) parts_.load.give_back(bytes);
    if (!result) note_failure(*subscription, ended.context.event(), result.error());
  };
  parts_.dispatcher.start(std::move(started), false);
}

void EventEngine::note_failure(const LocalSubscription& subscription, std::string_view event,
                               const Error& error) {
  parts_.log.error("The handler of event '", event, "' in service '", subscription.service().full_name(),
                   "' failed: ", error.to_string());
  // Events of the node itself would tell of themselves for ever.
  if (error.error_class() == ErrorClass::kQueueIsFull && !event.starts_with('$') && parts_.on_refused)
    parts_.on_refused(error);
}

}  // namespace weft
