#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "weft/weft.h"

namespace greeter {

// Workers of our own zone in turn; those of others only when it has none.
class PreferZone final : public weft::Strategy {
 public:
  explicit PreferZone(std::string_view zone) : zone_(zone) {}
  const weft::Endpoint* select(std::span<const weft::Endpoint* const> all, const weft::Selection&) override {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const weft::Endpoint* next = all[turn_++ % all.size()];
      if (next->node->metadata["zone"].str_or({}) == zone_) return next;
    }
    return all[turn_++ % all.size()];
  }

 private:
  std::string zone_;
  std::size_t turn_ = 0;
};

}  // namespace greeter
