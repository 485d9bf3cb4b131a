#include "transporters/factory.h"

#include <algorithm>
#include <cctype>

#include "transporters/memory/memory_transporter.h"
#include "transporters/tcp/tcp_transporter.h"
#if WEFT_HAS_NATS
#include "transporters/nats/nats_transporter.h"
#endif

namespace weft {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

Error unknown(const std::string& url) {
  std::string list;
  for (const std::string_view name : built_in_transporters())
    list += (list.empty() ? "" : ", ") + std::string(name);
  return Error::broker_options("Transporter '" + url + "' is unknown. This build has: " + list +
                               "; or a URL: tcp://host:port/nodeID, nats://host:port, memory://name.");
}

}  // namespace

std::vector<std::string_view> built_in_transporters() {
  return {
    "TCP", "Memory",
#if WEFT_HAS_NATS
        "NATS"
#endif
  };
}

Result<std::unique_ptr<Transporter>> make_transporter(const TransporterConfig& config, const Runtime& runtime,
                                                      const Logger& log, MemoryBuses* buses) {
  if (config.url.empty()) return std::unique_ptr<Transporter>();
  const std::string kind = lower(config.url);
  const Logger own_log = log.with_module("transporter");

  if (kind == "tcp" || kind.starts_with("tcp://")) {
    TcpOptions options = config.tcp;
    if (kind.size() > std::string_view("tcp://").size()) options.urls = Value(config.url);
    if (auto valid = validate(options); !valid) return valid.error();
    return std::unique_ptr<Transporter>(
        std::make_unique<TcpTransporter>(runtime.loop, runtime.network, own_log, std::move(options)));
  }
  if (kind == "memory" || kind.starts_with("memory://")) {
    if (buses == nullptr) {
      return Error::broker_options("Transporter '" + config.url +
                                   "' joins brokers of one process: give them a MemoryBuses to meet in.");
    }
    const std::string name =
        kind == "memory" ? std::string() : config.url.substr(std::string_view("memory://").size());
    return std::unique_ptr<Transporter>(std::make_unique<MemoryTransporter>(runtime.loop, buses->bus(name)));
  }
  if (kind == "nats" || kind.starts_with("nats://") || kind.starts_with("tls://")) {
#if WEFT_HAS_NATS
    NatsOptions options = config.nats;
    if (kind != "nats") options.url = config.url;
    if (auto servers = check_nats_options(options); !servers) return servers.error();
    if (runtime.poller == nullptr) {
      return Error::broker_options("Transporter '" + config.url +
                                   "' needs a runtime with a poller, such as UvRuntime.");
    }
    return std::unique_ptr<Transporter>(std::make_unique<NatsTransporter>(
        runtime.loop, *runtime.poller, runtime.random, own_log, std::move(options)));
#else
    return Error::broker_options(
        "Transporter '" + config.url +
        "': this build has no NATS. Install the NATS C client (libnats-dev) and configure weft again.");
#endif
  }
  return unknown(config.url);
}

}  // namespace weft
