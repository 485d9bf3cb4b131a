// Replays the recorded exchange between a Moleculer node and a scripted peer on a Gossip.

#include "tests/support/vectors.h"

#include <doctest/doctest.h>

#include "broker/gossip/gossip.h"
#include "lib/protocol/serializer.h"

namespace weft {
namespace {

Value services_named(const Value& names) {
  Value services = Value::array();
  for (const Value& name : names.items())
    services.push_back(Value{{"name", name}, {"actions", Value::object()}});
  return services;
}

Value names_of(const Value& services) {
  Value names = Value::array();
  for (const Value& service : services.items()) names.push_back(service["name"]);
  return names;
}

// What {$info} stands for in the recording.
Value expand_info(std::string_view node, const Value& brief) {
  return {{"ipList", arr("10.0.0.1")},
          {"hostname", "host-1"},
          {"instanceID", "instance of " + std::string(node)},
          {"client", {{"type", "nodejs"}}},
          {"config", Value::object()},
          {"port", brief["port"]},
          {"seq", brief["seq"]},
          {"metadata", Value::object()},
          {"services", services_named(brief["services"])}};
}

Value brief_info(const Value& info) {
  Value brief{{"$info", true},
              {"seq", info["seq"]},
              {"services", names_of(info["services"])},
              {"port", info["port"]}};
  if (info.contains("sender")) brief.set("sender", info["sender"]);
  return brief;
}

// Applies `change` to each info in the `online` map of a GOSSIP_RES.
template <typename Change>
Value with_infos(Value body, Change&& change) {
  if (Value* online = body.find("online")) {
    for (Member& member : online->members()) {
      for (Value& item : member.value.items()) {
        if (item.is_object()) item = change(member.key, item);
      }
    }
  }
  return body;
}

PacketType type_named(std::string_view name) {
  return packet_type_from(name).value();
}

std::string_view plain(std::string_view address) {
  return address.starts_with("::ffff:") ? address.substr(7) : address;
}

class Replay {
 public:
  Replay() : catalog_("node-1", "instance of node-1"), random_(1), gossip_(catalog_, {}, random_) {
    Node& self = catalog_.self();
    self.seq = 3;
    self.port = 15501;
    self.hostname = "host-1";
    self.ip_list = {"10.0.0.1"};
    self.services = services_named(arr("math"));
  }

  void run(const Value& step) {
    now_ += std::chrono::seconds(10);
    const Value& cpu = step["before"]["node-1"]["cpu"];
    if (cpu.is_integer()) gossip_.local_cpu(static_cast<int>(cpu.i64()));
    for (const Value& packet : step["sent"].items()) {
      const PacketType type = type_named(packet["type"].str());
      const Value body = with_infos(packet["payload"], expand_info);
      gossip_.receive(type, body["sender"].str(), body, "::ffff:127.0.0.1", now_);
    }
    if (step["title"].str().find("half-closes") != std::string_view::npos) {
      gossip_.node_lost("peer-x", false, now_);
    }
    check_outputs(step);
    check_state(step["after"]);
  }

 private:
  void check_outputs(const Value& step) {
    std::vector<Value> answers;
    std::vector<std::string> events;
    for (Gossip::Output& output : gossip_.take_output()) {
      if (auto* send = std::get_if<Gossip::Send>(&output)) {
        const bool is_answer = send->type == PacketType::kGossipResponse && send->nodes.front() == "peer-x";
        if (is_answer) {
          answers.push_back(
              with_infos(send->body, [](const auto&, const Value& info) { return brief_info(info); }));
        }
      } else if (auto* applied = std::get_if<Gossip::InfoApplied>(&output)) {
        const InfoOutcome& outcome = applied->outcome;
        CHECK(outcome.services_changed);
        const bool connected = outcome.is_new || outcome.reconnected;
        events.push_back((connected ? "$node.connected " : "$node.updated ") + outcome.node->id);
      } else if (auto* offline = std::get_if<Gossip::WentOffline>(&output)) {
        events.push_back("$node.disconnected " + offline->node->id +
                         (offline->unexpected ? " unexpected" : ""));
      }
    }
    std::vector<Value> recorded_answers;
    for (const Value& packet : step["received"].items()) {
      if (packet["type"] != Value("GOSSIP_RES")) continue;
      Value body = packet["payload"];
      body.erase("ver");
      body.erase("sender");
      recorded_answers.push_back(std::move(body));
    }
    std::vector<std::string> recorded_events;
    for (const Value& event : step["events"].items()) {
      std::string text = std::string(event["event"].str()) + " " + std::string(event["node"].str());
      if (event["unexpected"] == Value(true)) text += " unexpected";
      recorded_events.push_back(text);
    }
    INFO("answers: " << to_json(Value(answers)) << " recorded: " << to_json(Value(recorded_answers)));
    CHECK((Value(answers) == Value(recorded_answers)));
    CHECK(events == recorded_events);
  }

  void check_state(const Value& after) {
    for (const Member& member : after.members()) {
      const Node* node = catalog_.find(member.key);
      const Value& recorded = member.value;
      REQUIRE((node == nullptr) == recorded.is_null());
      if (node == nullptr) continue;
      CAPTURE(node->id);
      CHECK(node->available == recorded["available"].boolean());
      CHECK(node->seq == recorded["seq"].u64());
      CHECK(node->cpu.value_or(-1) == recorded["cpu"].i64_or(-1));
      CHECK(node->cpu_seq == static_cast<std::uint64_t>(recorded["cpuSeq"].i64_or(0)));
      CHECK(node->udp_address == plain(recorded["udpAddress"].str_or({})));
      CHECK(node->port == recorded["port"].i64());
      CHECK(node->hostname == recorded["hostname"].str());
      CHECK(to_json(names_of(node->services)) == to_json(recorded["services"]));
    }
  }

  NodeCatalog catalog_;
  SeededRandom random_;
  Gossip gossip_;
  Instant now_{};
};

}  // namespace

TEST_SUITE("gossip vectors") {
  TEST_CASE("every step of the recording leaves the same answers, events and state") {
    const Value recording = test::load_json_vector("gossip.json");
    Replay replay;
    REQUIRE(recording["steps"].size() == 29);
    for (const Value& step : recording["steps"].items()) {
      const std::string title(step["title"].str());
      CAPTURE(title);
      replay.run(step);
    }
  }
}
}  // namespace weft
