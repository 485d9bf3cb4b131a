#include "broker/gossip/gossip_rows.h"

#include <algorithm>
#include <cmath>

namespace weft {

bool is_node_id(std::string_view id) {
  return !id.empty() && id.size() <= kNodeIdBytesMax;
}

std::optional<std::uint64_t> read_seq(const Value& value) {
  const std::int64_t seq = value.i64_or(-1);
  if (seq < 0 || static_cast<std::uint64_t>(seq) >= kSeqMax) return {};
  return static_cast<std::uint64_t>(seq);
}

std::optional<CpuRow> read_cpu(const Value& seq, const Value& percent) {
  const auto number = read_seq(seq);
  const double load = percent.is_null() ? 0 : percent.f64_or(-1);
  if (!number || !(load >= 0 && load <= 100)) return {};
  CpuRow row{*number, {}};
  if (!percent.is_null()) row.percent = static_cast<int>(std::lround(load));
  return row;
}

GossipDigest::GossipDigest(const Value& body, std::size_t rows_max) {
  const Value& online = body["online"];
  const Value& offline = body["offline"];
  rows_.reserve(std::min(rows_max, online.members().size() + offline.members().size()));
  for (const Member& member : online.members()) {
    const Value& value = member.value;
    const auto seq = value.is_array() ? read_seq(value[0]) : std::nullopt;
    if (!seq || !is_node_id(member.key) || rows_.size() >= rows_max) {
      ++ignored_;
      continue;
    }
    rows_[member.key] = {true, *seq, read_cpu(value[1], value[2]).value_or(CpuRow{})};
  }
  for (const Member& member : offline.members()) {
    const auto seq = read_seq(member.value);
    if (!seq || !is_node_id(member.key) || rows_.size() >= rows_max) {
      ++ignored_;
      continue;
    }
    rows_[member.key] = {false, *seq, {}};  // Goes before what `online` says of the same node.
  }
}

const GossipDigest::Row* GossipDigest::find(std::string_view node) const {
  const auto found = rows_.find(node);
  return found == rows_.end() ? nullptr : &found->second;
}

std::optional<GossipNews> read_news(const Value& row) {
  GossipNews news;
  const auto items = row.items();
  if (items.size() == 2) {
    news.cpu = read_cpu(items[0], items[1]);
    return news.cpu ? std::optional(news) : std::nullopt;
  }
  if (items.size() != 1 && items.size() != 3) return {};
  const Value& info = items[0];
  if (!info.is_object()) return {};
  const Value& services = info["services"];
  const std::int64_t seq = info.contains("seq") ? info["seq"].i64_or(-1) : 1;
  if (seq < 0 || static_cast<std::uint64_t>(seq) > kSeqMax) return {};
  if (!services.is_null() && !services.is_array()) return {};
  news.info = &info;
  news.info_seq = std::max<std::uint64_t>(static_cast<std::uint64_t>(seq), 1);
  if (items.size() == 3) news.cpu = read_cpu(items[1], items[2]);
  return news;
}

Value info_of(const Node& node) {
  Value info = Value::object();
  info.reserve(10);
  const auto add = [&info](const char* key, Value value) { info.append_member(key, std::move(value)); };
  add("ipList", node.ip_list);
  add("hostname", node.hostname);
  add("instanceID", node.instance_id);
  add("client", node.client.is_null() ? Value::object() : node.client);
  add("config", node.config.is_null() ? Value::object() : node.config);
  add("port", node.port == 0 ? Value() : Value(node.port));
  add("seq", node.seq);
  add("metadata", node.metadata);
  add("services", node.services);
  if (!node.local) add("sender", node.id);
  return info;
}

Value info_row_of(const Node& node) {
  return arr(info_of(node), node.cpu_seq, node.cpu.value_or(0));
}

Value cpu_row_of(const Node& node) {
  return arr(node.cpu_seq, node.cpu.value_or(0));
}

std::size_t estimated_bytes(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kString:
      return value.str().size() + 3;
    case Value::Kind::kBinary:
      return value.binary().size() * 4 + 32;
    case Value::Kind::kArray: {
      std::size_t bytes = 2;
      for (const Value& item : value.items()) bytes += estimated_bytes(item) + 1;
      return bytes;
    }
    case Value::Kind::kObject: {
      std::size_t bytes = 2;
      for (const Member& member : value.members()) {
        bytes += member.key.size() + 4 + estimated_bytes(member.value);
      }
      return bytes;
    }
    default:
      return 8;
  }
}

}  // namespace weft
