#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "lib/error/result.h"
#include "lib/time/clock.h"

namespace weft {

struct NatsOptions {
  // One server or several, parted by commas: "nats://[user:password@]host[:port]", "tls://…". They are tried
  // in this order; those that the servers name themselves follow.
  std::string url = "nats://127.0.0.1:4222";

  std::string user;
  std::string password;
  std::string token;
  std::string credentials_file;  // As `nsc` writes it: a user JWT and its seed.
  std::string nkey;              // The public key that belongs to nkey_seed_file.
  std::string nkey_seed_file;

  bool tls = false;             // Also on with a tls:// URL.
  std::string tls_ca_file;      // PEM. Empty: the system's.
  std::string tls_cert_file;    // PEM chain of this client, with tls_key_file.
  std::string tls_key_file;     // PEM.
  std::string tls_server_name;  // The name that the server's certificate must carry; empty: its host name.
  bool tls_verify = true;

  std::string name;                                    // What the server's monitor shows; empty: the node ID.
  Duration connect_timeout = std::chrono::seconds(2);  // For each server.
  Duration reconnect_wait_max = std::chrono::seconds(2);  // Between rounds of attempts; begins at 50 ms.
  Duration ping_interval = std::chrono::seconds(5);  // A server that is silent for twice as long is lost.
  std::size_t queue_bytes_max = 64UL << 20;          // Of what the server has not taken yet.
};

// The servers of `options.url`, each with its scheme; or the error that names the option that is wrong: a URL
// that is none, a file that cannot be read, a half-given pair.
[[nodiscard]] Result<std::vector<std::string>> check_nats_options(const NatsOptions& options);

}  // namespace weft
