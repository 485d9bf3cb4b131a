#include "lib/sim/sim_bus.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "lib/base/assert.h"
#include "lib/sim/sim_bus_wire.h"
#include "lib/transport/subject.h"

namespace weft {

using Verb = SimBusMessage::Verb;

class SimBus::Server {
 public:
  Server(SimWorld& world, SimHost& host, const SimBusOptions& options) : process_(world, host) {
    auto listener =
        process_.network().listen({"", options.port}, options.stream,
                                  [this](std::unique_ptr<Stream> stream) { accept(std::move(stream)); });
    WEFT_ASSERT(listener.ok());
    listener_ = std::move(*listener);
  }
  ~Server() { process_.kill(); }

  [[nodiscard]] SimRuntime& process() { return process_; }
  [[nodiscard]] std::size_t joined() const {
    std::size_t count = 0;
    for (const auto& [name, realm] : realms_) count += realm.clients.size();
    return count;
  }

 private:
  struct Realm;

  struct Client final : Stream::Handler {
    Client(Server& its_server, std::unique_ptr<Stream> its_stream)
        : server(its_server), stream(std::move(its_stream)) {
      stream->set_handler(*this);
    }
    void on_data(BytesView bytes) override {
      reader.read(bytes, [this](const SimBusMessage& message) {
        server.receive(*this, message);
        return !gone;
      });
    }
    void on_closed(const Error&) override { server.drop(*this); }
    void put(const SimBusMessage& message) {
      if (gone) return;
      scratch.clear();
      append(scratch, message);
      if (!stream->write(scratch.view(), {})) server.drop(*this);  // A slow consumer.
    }

    Server& server;
    std::unique_ptr<Stream> stream;
    SimBusReader reader;
    Buffer scratch;
    Realm* realm = nullptr;  // Null until it joins.
    std::string node_id;
    std::vector<std::string> actions;
    std::vector<std::pair<std::string, std::string>> events;  // Group and subscription.
    bool gone = false;
  };

  // One namespace.
  struct Realm {
    std::vector<Client*> clients;  // In order of joining.
    std::map<std::string, std::vector<Client*>, std::less<>> by_node;
  };

  void accept(std::unique_ptr<Stream> stream) {
    clients_.push_back(std::make_unique<Client>(*this, std::move(stream)));
  }

  // Destroyed at the end of the turn: it may be in the middle of reading.
  void drop(Client& client) {
    if (std::exchange(client.gone, true)) return;
    leave(client);
    process_.loop().defer([this, &client] {
      std::erase_if(clients_, [&client](const auto& held) { return held.get() == &client; });
    });
  }

  void leave(Client& client) {
    if (client.realm == nullptr) return;
    std::erase(client.realm->clients, &client);
    const auto same_id = client.realm->by_node.find(client.node_id);
    std::erase(same_id->second, &client);
    if (same_id->second.empty()) client.realm->by_node.erase(same_id);
    client.realm = nullptr;
  }

  void join(Client& client, const SimBusMessage& message) {
    leave(client);
    client.node_id = message.name;
    client.realm = &realms_[std::string(message.tag)];
    client.realm->clients.push_back(&client);
    client.realm->by_node[client.node_id].push_back(&client);
  }

  void receive(Client& client, const SimBusMessage& message) {
    if (message.verb == Verb::kJoin) return join(client, message);
    if (message.verb == Verb::kEcho) return client.put(message);
    if (client.realm == nullptr) return;
    SimBusMessage frame{.verb = Verb::kFrame, .type = message.type, .payload = message.payload};
    switch (message.verb) {
      case Verb::kLeave:
        return leave(client);
      case Verb::kSend:
        return send(client, message, frame, !message.tag.empty());
      case Verb::kProbe:
        return send(client, message, frame, true);
      case Verb::kBroadcast:
        takers_ = client.realm->clients;  // A full queue changes the list.
        for (Client* taker : takers_) taker->put(frame);
        return;
      case Verb::kSubscribe:
        return subscribe(client, message.payload);
      case Verb::kRequest:
      case Verb::kEvent:
        frame.tag = "b";
        return balance(client, message, frame);
      case Verb::kJoin:
      case Verb::kFrame:
      case Verb::kUndelivered:
      case Verb::kEcho:
        return;
    }
  }

  void send(Client& client, const SimBusMessage& message, const SimBusMessage& frame, bool wants_to_know) {
    const auto target = client.realm->by_node.find(message.name);
    if (target != client.realm->by_node.end()) {
      takers_ = target->second;
      for (Client* taker : takers_) taker->put(frame);
    } else if (wants_to_know) {
      client.put({.verb = Verb::kUndelivered, .name = message.name, .tag = message.tag});
    }
  }

  void balance(Client& client, const SimBusMessage& message, const SimBusMessage& frame) {
    takers_.clear();
    for (Client* candidate : client.realm->clients) {
      const bool takes =
          message.verb == Verb::kRequest
              ? std::find(candidate->actions.begin(), candidate->actions.end(), message.name) !=
                    candidate->actions.end()
              : std::any_of(
                    candidate->events.begin(), candidate->events.end(), [&message](const auto& event) {
                      return event.first == message.name && subject_matches(event.second, message.tag);
                    });
      if (takes) takers_.push_back(candidate);
    }
    if (!takers_.empty()) takers_[process_.runtime().random.below(takers_.size())]->put(frame);
  }

  static void subscribe(Client& client, BytesView lines) {
    client.actions.clear();
    client.events.clear();
    while (!lines.empty()) {
      const BytesView line = lines.substr(0, lines.find('\n'));
      lines.remove_prefix(line.size() + 1);
      const BytesView rest = line.substr(2);
      if (line[0] == 'a') {
        client.actions.emplace_back(rest);
      } else {
        const std::size_t blank = rest.find(' ');
        client.events.emplace_back(rest.substr(0, blank), event_subscription(rest.substr(blank + 1)));
      }
    }
  }

  SimRuntime process_;
  std::unique_ptr<StreamListener> listener_;
  std::map<std::string, Realm, std::less<>> realms_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<Client*> takers_;  // Scratch.
};

SimBus::SimBus(SimWorld& world, std::string host, const SimBusOptions& options)
    : world_(world), host_(world.fabric().add_host(std::move(host))), options_(options) {
  start();
}

SimBus::~SimBus() = default;

void SimBus::stop() {
  server_.reset();
}

void SimBus::start() {
  if (server_ == nullptr) server_ = std::make_unique<Server>(world_, host_, options_);
}

void SimBus::freeze() {
  if (server_ != nullptr) server_->process().freeze();
}

void SimBus::thaw() {
  if (server_ != nullptr) server_->process().thaw();
}

std::size_t SimBus::client_count() const {
  return server_ == nullptr ? 0 : server_->joined();
}

}  // namespace weft
