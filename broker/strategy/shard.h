#pragma once

#include <functional>
#include <optional>

#include "broker/strategy/key_finder.h"
#include "broker/strategy/position_cache.h"
#include "broker/strategy/shard_ring.h"
#include "broker/strategy/strategy.h"

namespace weft {

struct ShardOptions {
  // Where the key is: a path into the params (an event's payload), "user.id", "ids[0]"; or, behind a '#',
  // into the meta. Empty: there is none.
  std::string shard_key;
  // Finds the key instead of shard_key.
  std::function<Value(const Selection&)> key;
  std::size_t vnodes = 10;
  std::uint64_t ring_size = 1ULL << 32;
  std::size_t cache_size = 1000;  // Keys whose place is remembered.
};

inline constexpr std::size_t kShardVnodesMax = 100'000;
inline constexpr std::size_t kShardCacheSizeMax = 1'000'000;

// The first 8 hexadecimal digits of a text's MD5 as a number.
class ShardHash {
 public:
  ShardHash();
  ~ShardHash();
  ShardHash(const ShardHash&) = delete;
  ShardHash& operator=(const ShardHash&) = delete;

  // Nothing when the system's crypto library refuses MD5.
  [[nodiscard]] std::optional<std::uint32_t> operator()(std::string_view key);

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

// The same key always goes to the same node, by the ring all nodes of a mesh compute alike. Without a key, or
// with null for one: any node.
//
// The ring is built from what is available at the first selection after a change. When the node a key belongs
// to is out for a while without such a change (a breaker), its neighbour on the ring takes the key.
class ShardStrategy final : public Strategy {
 public:
  ShardStrategy(ShardOptions options, Random& random);

  const Endpoint* select(std::span<const Endpoint* const> endpoints, const Selection& selection) override;
  void on_endpoints_changed() override { ring_.clear(); }

 private:
  [[nodiscard]] const Endpoint* endpoint_at(std::uint64_t position,
                                            std::span<const Endpoint* const> endpoints) const;

  ShardOptions options_;
  Random& random_;
  KeyFinder finder_;
  ShardHash hash_;
  ShardRing ring_;
  PositionCache cache_;
};

// `options.key` or shard_key; out of range numbers are a BrokerOptionsError.
[[nodiscard]] Result<std::unique_ptr<Strategy>> make_shard_strategy(ShardOptions options, Random& random);

// Options: shardKey, vnodes, ringSize, cacheSize.
[[nodiscard]] Result<std::unique_ptr<Strategy>> make_shard(const StrategyContext& context);

}  // namespace weft
