#pragma once

#include "broker/gossip/gossip.h"

namespace weft {

// A GOSSIP_RES in the making. What gets too long is sent in several packets; an empty one is not sent.
class Gossip::Answer {
 public:
  Answer(std::vector<std::string> to, std::size_t bytes_max, std::vector<Output>& output)
      : to_(std::move(to)), bytes_max_(bytes_max), output_(output) {}

  void online(std::string_view id, Value row) { add(online_, id, std::move(row)); }
  void offline(std::string_view id, std::uint64_t seq) { add(offline_, id, seq); }

  void send() {
    if (online_.empty() && offline_.empty()) return;
    Value body = Value::object();
    if (!online_.empty()) body.set("online", std::move(online_));
    if (!offline_.empty()) body.set("offline", std::move(offline_));
    output_.push_back(Send{to_, PacketType::kGossipResponse, std::move(body)});
    online_ = Value::object();
    offline_ = Value::object();
    bytes_ = 0;
  }

 private:
  void add(Value& map, std::string_view id, Value row) {
    const std::size_t bytes = estimated_bytes(row) + id.size() + 4;
    if (bytes_ + bytes > bytes_max_) send();
    bytes_ += bytes;
    map.append_member(std::string(id), std::move(row));  // Each node is named once.
  }

  std::vector<std::string> to_;
  std::size_t bytes_max_;
  std::vector<Output>& output_;
  std::size_t bytes_ = 0;
  Value online_ = Value::object();
  Value offline_ = Value::object();
};

}  // namespace weft
