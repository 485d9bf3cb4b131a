#include "broker/registry/endpoint.h"

#include "lib/base/assert.h"

namespace weft {

void Flight::begin(Endpoint& endpoint, Instant now) {
  WEFT_ASSERT(endpoint_ == nullptr);
  endpoint_ = &endpoint;
  begun_ = now;
  earlier_ = endpoint.newest_;
  (earlier_ != nullptr ? earlier_->later_ : endpoint.oldest_) = this;
  endpoint.newest_ = this;
  ++endpoint.in_flight_;
  if (endpoint.group != nullptr) ++endpoint.group->in_flight;
}

void Flight::leave() {
  if (endpoint_ == nullptr) return;
  Endpoint& endpoint = *endpoint_;
  (earlier_ != nullptr ? earlier_->later_ : endpoint.oldest_) = later_;
  (later_ != nullptr ? later_->earlier_ : endpoint.newest_) = earlier_;
  endpoint_ = nullptr;
  earlier_ = later_ = nullptr;
  --endpoint.in_flight_;
  if (endpoint.group != nullptr) --endpoint.group->in_flight;
}

Endpoint::~Endpoint() {
  while (oldest_ != nullptr) oldest_->leave();
}

}  // namespace weft
