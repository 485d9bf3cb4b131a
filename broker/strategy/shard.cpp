#include "broker/strategy/shard.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <optional>

#include "broker/strategy/option_reader.h"

namespace weft {

// Looking the algorithm up costs four times what a digest of a short text does: it is done once.
struct ShardHash::Engine {
  std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)> md5{EVP_MD_fetch(nullptr, "MD5", nullptr), EVP_MD_free};
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

ShardHash::ShardHash() : engine_(std::make_unique<Engine>()) {}
ShardHash::~ShardHash() = default;

std::optional<std::uint32_t> ShardHash::operator()(std::string_view key) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  EVP_MD_CTX* const context = engine_->context.get();
  if (engine_->md5 == nullptr || context == nullptr ||
      EVP_DigestInit_ex(context, engine_->md5.get(), nullptr) != 1 ||
      EVP_DigestUpdate(context, key.data(), key.size()) != 1 ||
      EVP_DigestFinal_ex(context, digest.data(), &size) != 1 || size < 4) {
    return {};
  }
  return (std::uint32_t{digest[0]} << 24) | (std::uint32_t{digest[1]} << 16) |
         (std::uint32_t{digest[2]} << 8) | std::uint32_t{digest[3]};
}

ShardStrategy::ShardStrategy(ShardOptions options, Random& random)
    : options_(std::move(options)),
      random_(random),
      finder_(options_.shard_key, options_.key),
      ring_(options_.vnodes, options_.ring_size),
      cache_(options_.cache_size) {}

const Endpoint* ShardStrategy::select(std::span<const Endpoint* const> endpoints,
                                      const Selection& selection) {
  std::string_view key;
  if (!finder_.find(selection, key)) return endpoints[random_.below(endpoints.size())];
  if (ring_.empty()) {
    ring_.build(endpoints);
    cache_.clear();
  }
  std::uint64_t position = cache_.find(key);
  if (position == 0) {
    const std::uint64_t hash = hash_(key).value_or(0);  // There was an MD5 when this was made.
    position = ring_.position_of(hash % options_.ring_size);
    cache_.insert(key, position);
  }
  return endpoint_at(position, endpoints);
}

const Endpoint* ShardStrategy::endpoint_at(std::uint64_t position,
                                           std::span<const Endpoint* const> endpoints) const {
  constexpr std::uint64_t kNeighboursMax = 8;  // Bounds the search when many are out.
  for (std::uint64_t step = 0; step < kNeighboursMax; ++step) {
    const ShardRing::Slot& slot = ring_.slot(position + step);
    if (slot.list_index < endpoints.size() && endpoints[slot.list_index] == slot.endpoint)
      return slot.endpoint;
    if (std::find(endpoints.begin(), endpoints.end(), slot.endpoint) != endpoints.end()) return slot.endpoint;
  }
  return endpoints[position % endpoints.size()];
}

Result<std::unique_ptr<Strategy>> make_shard_strategy(ShardOptions options, Random& random) {
  const auto refuse = [](std::string_view option, std::string allowed) {
    return Error::broker_options("Strategy 'Shard': " + std::string(option) + " must be " + allowed + ".",
                                 {{"strategy", "Shard"}, {"option", option}, {"allowed", allowed}});
  };
  if (options.vnodes == 0 || options.vnodes > kShardVnodesMax) {
    return refuse("vnodes", "an integer from 1 to " + std::to_string(kShardVnodesMax));
  }
  if (options.ring_size == 0 || options.ring_size > 1ULL << 32) {
    return refuse("ringSize", "an integer from 1 to 4294967296");
  }
  if (options.cache_size > kShardCacheSizeMax) {
    return refuse("cacheSize", "an integer from 0 to " + std::to_string(kShardCacheSizeMax));
  }
  if (!ShardHash()("")) {
    return Error::broker_options("Strategy 'Shard' needs MD5, which this system's crypto library refuses.",
                                 {{"strategy", "Shard"}});
  }
  return std::make_unique<ShardStrategy>(std::move(options), random);
}

Result<std::unique_ptr<Strategy>> make_shard(const StrategyContext& context) {
  OptionReader reader("Shard", context.options);
  ShardOptions options;
  options.shard_key = reader.text("shardKey");
  options.vnodes = static_cast<std::size_t>(reader.integer("vnodes", 10, 1, kShardVnodesMax));
  options.ring_size = static_cast<std::uint64_t>(reader.integer("ringSize", 1LL << 32, 1, 1LL << 32));
  options.cache_size = static_cast<std::size_t>(reader.integer("cacheSize", 1000, 0, kShardCacheSizeMax));
  if (auto read = reader.finish(); !read) return read.error();
  return make_shard_strategy(std::move(options), context.random);
}

}  // namespace weft
