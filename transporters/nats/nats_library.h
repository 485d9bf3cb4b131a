#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lib/error/error.h"
#include "transporters/nats/nats_mailbox.h"

using natsConnection = struct __natsConnection;
using natsMsg = struct __natsMsg;
using natsStatistics = struct __natsStatistics;
using natsSubscription = struct __natsSubscription;

namespace weft {

// The client library's connection with its subscriptions, and what its callbacks need.
//
// Destroying it may block, and happens on a worker; everything else is the loop thread's.
struct NatsLibrary {
  NatsLibrary() = default;
  ~NatsLibrary();
  NatsLibrary(const NatsLibrary&) = delete;
  NatsLibrary& operator=(const NatsLibrary&) = delete;

  void process_read();
  void process_write();

  // Frees the message, later: the library wakes a thread of its own for each one that is freed by itself.
  void discard(natsMsg* message, std::size_t bytes);
  void sweep();

  natsConnection* connection = nullptr;
  natsStatistics* statistics = nullptr;
  std::vector<natsSubscription*> subscriptions;
  natsSubscription* inbox = nullptr;  // One of them.
  int socket = -1;
  bool is_secure = false;   // TLS writes to the socket.
  bool is_stopped = false;  // The library has stopped polling: the connection is lost.
  const std::shared_ptr<NatsMailbox> mailbox = std::make_shared<NatsMailbox>();

 private:
  std::vector<natsMsg*> garbage_;
  std::size_t garbage_bytes_ = 0;
};

// What the library says about the call that failed with `status` on this thread.
[[nodiscard]] std::string nats_error_text(int status);
[[nodiscard]] Error nats_disconnected(std::string text);
// A URL may hold a password.
[[nodiscard]] std::string without_credentials(std::string url);

}  // namespace weft
