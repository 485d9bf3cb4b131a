#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "broker/registry/node.h"
#include "lib/value/value.h"

namespace weft {

// The parts of gossip packets, read and written. Nothing a peer sends is trusted: what does not fit is as if
// it were not there.

// The largest sequence number taken from others. Far from 2^53, so that raising it stays exact in JavaScript.
// What is said of third nodes stays below it: a node can always outbid a rumour.
inline constexpr std::uint64_t kSeqMax = 1ULL << 52;

[[nodiscard]] bool is_node_id(std::string_view id);
// A claim about a node's sequence: an integer from 0 to below kSeqMax.
[[nodiscard]] std::optional<std::uint64_t> read_seq(const Value& value);

// A node's load with the number that says which of two is newer. 0 is: nothing known.
struct CpuRow {
  std::uint64_t seq = 0;
  std::optional<int> percent;
};
[[nodiscard]] std::optional<CpuRow> read_cpu(const Value& seq, const Value& percent);

// What a GOSSIP_REQ says: which nodes its sender knows, and how new its knowledge is.
class GossipDigest {
 public:
  struct Row {
    bool online = false;
    std::uint64_t seq = 0;
    CpuRow cpu;  // Of online rows.
  };

  // Reads up to `rows_max` rows of `body`, which the digest borrows names from.
  GossipDigest(const Value& body, std::size_t rows_max);

  [[nodiscard]] const Row* find(std::string_view node) const;
  [[nodiscard]] const std::unordered_map<std::string_view, Row>& rows() const { return rows_; }
  [[nodiscard]] std::size_t ignored() const { return ignored_; }

 private:
  std::unordered_map<std::string_view, Row> rows_;
  std::size_t ignored_ = 0;
};

// A row of GOSSIP_RES.online: [info], [info, cpuSeq, cpu] or [cpuSeq, cpu].
struct GossipNews {
  const Value* info = nullptr;
  std::uint64_t info_seq = 0;
  std::optional<CpuRow> cpu;
};
[[nodiscard]] std::optional<GossipNews> read_news(const Value& row);

// What peers are told of a node. Infos of third nodes name it as `sender`, as JavaScript nodes do.
[[nodiscard]] Value info_of(const Node& node);
[[nodiscard]] Value info_row_of(const Node& node);
[[nodiscard]] Value cpu_row_of(const Node& node);

// About how many bytes `value` takes in JSON.
[[nodiscard]] std::size_t estimated_bytes(const Value& value);

}  // namespace weft
