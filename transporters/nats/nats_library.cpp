#include "transporters/nats/nats_library.h"

#include <nats/nats.h>

#include <type_traits>
#include <utility>

#include "transporters/nats/nats_signals.h"

namespace weft {

namespace {
constexpr std::size_t kGarbageMax = 256;
constexpr std::size_t kGarbageBytesMax = 128UL << 10;
static_assert(std::is_same_v<natsSock, int>);
}  // namespace

NatsLibrary::~NatsLibrary() {
  if (connection == nullptr) return;
  const BrokenPipeGuard guard(is_secure);
  natsConnection_Close(connection);
  sweep();
  for (natsSubscription* subscription : subscriptions) natsSubscription_Destroy(subscription);
  natsStatistics_Destroy(statistics);
  natsConnection_Destroy(connection);
}

void NatsLibrary::process_read() {
  const BrokenPipeGuard guard(is_secure);
  natsConnection_ProcessReadEvent(connection);
}

void NatsLibrary::process_write() {
  const BrokenPipeGuard guard(is_secure);
  natsConnection_ProcessWriteEvent(connection);
}

void NatsLibrary::discard(natsMsg* message, std::size_t bytes) {
  garbage_.push_back(message);
  garbage_bytes_ += bytes;
  if (garbage_.size() >= kGarbageMax || garbage_bytes_ >= kGarbageBytesMax) sweep();
}

void NatsLibrary::sweep() {
  for (natsMsg* message : garbage_) natsMsg_Destroy(message);
  garbage_.clear();
  garbage_bytes_ = 0;
}

std::string nats_error_text(int status) {
  const char* detail = nats_GetLastError(nullptr);
  std::string text = natsStatus_GetText(static_cast<natsStatus>(status));
  if (detail != nullptr && *detail != '\0' && text != detail) text.append(": ").append(detail);
  return text;
}

Error nats_disconnected(std::string text) {
  return Error(ErrorClass::kBrokerDisconnected, std::move(text));
}

std::string without_credentials(std::string url) {
  const std::size_t scheme = url.find("://");
  const std::size_t at = url.rfind('@');
  if (scheme != std::string::npos && at != std::string::npos && at > scheme) {
    url.erase(scheme + 3, at + 1 - (scheme + 3));
  }
  return url;
}

}  // namespace weft
