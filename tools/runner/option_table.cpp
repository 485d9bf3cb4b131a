#include "tools/runner/option_table.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/protocol/serializer.h"

namespace weft::runner {

namespace {

bool set_text(std::string& out, const Value& value) {
  if (value.is_string()) {
    out = value.str();
  } else if (value.is_integer()) {
    out = std::to_string(value.i64_or(0));  // A node id of digits is text all the same.
  } else {
    return false;
  }
  return true;
}

bool set_flag(bool& out, const Value& value) {
  if (!value.is_bool()) return false;
  out = value.boolean();
  return true;
}

template <typename Integer>
bool set_integer(Integer& out, const Value& value, std::int64_t min, std::int64_t max) {
  std::int64_t number = min - 1;
  if (value.is_number()) number = value.i64_or(min - 1);
  if (number < min || number > max) return false;
  out = static_cast<Integer>(number);
  return true;
}

bool set_duration(Duration& out, const Value& value, double ms_of_unit) {
  if (!value.is_number() || !(value.f64() >= 0) || value.f64() > 1e9) return false;
  out = from_ms(value.f64() * ms_of_unit);
  return true;
}

bool set_share(double& out, const Value& value, double max) {
  if (!value.is_number() || !(value.f64() > 0) || value.f64() > max) return false;
  out = value.f64();
  return true;
}

bool set_seconds(Duration& out, const Value& value) {
  return set_duration(out, value, 1000);
}
bool set_ms(Duration& out, const Value& value) {
  return set_duration(out, value, 1);
}

// An object, or its JSON text.
bool set_object(Value& out, const Value& value) {
  if (value.is_object()) {
    out = value;
    return true;
  }
  if (!value.is_string()) return false;
  auto parsed = parse_json(value.str());
  if (!parsed || !(*parsed).is_object()) return false;
  out = std::move(*parsed);
  return true;
}

bool set_log_level(LogLevel& out, const Value& value) {
  static constexpr LogLevel kLevels[] = {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn,
                                         LogLevel::kError, LogLevel::kFatal, LogLevel::kOff};
  if (value.is_bool() && !value.boolean()) {
    out = LogLevel::kOff;
    return true;
  }
  if (!value.is_string()) return false;
  for (const LogLevel level : kLevels) {
    if (to_string(level) != value.str()) continue;
    out = level;
    return true;
  }
  return false;
}

bool set_urls(Value& out, const Value& value) {
  if (!value.is_string() && !value.is_array() && !value.is_object()) return false;
  out = value;
  return true;
}

// A list of texts, or one text with commas.
bool set_list(std::vector<std::string>& out, const Value& value) {
  std::vector<std::string> list;
  if (value.is_array()) {
    for (const Value& item : value.items()) {
      if (!item.is_string()) return false;
      list.emplace_back(item.str());
    }
  } else if (value.is_string()) {
    std::string_view rest = value.str();
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (comma > 0) list.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  } else {
    return false;
  }
  out = std::move(list);
  return true;
}

std::vector<OptionSpec> make_table() {
  constexpr std::string_view kFlag = "true or false";
  constexpr std::string_view kSeconds = "seconds, 0 or more";
  constexpr std::string_view kMs = "milliseconds, 0 or more";
  constexpr std::string_view kText = "text";
  return {
      {"nodeID", "NODEID", kText, "Unique id of this node",
       [](Settings& s, const Value& v) { return set_text(s.app.node_id, v); }},
      {"namespace", "NAMESPACE", kText, "Only nodes of one namespace see each other",
       [](Settings& s, const Value& v) { return set_text(s.app.name_space, v); }},
      {"transporter", "TRANSPORTER", "TCP, NATS, or a URL", "How nodes reach each other",
       [](Settings& s, const Value& v) { return set_text(s.app.transporter, v); }},
      {"serializer", "SERIALIZER", "JSON or MsgPack", "The same for the whole mesh",
       [](Settings& s, const Value& v) { return set_text(s.app.broker.serializer, v); }},
      {"metadata", "METADATA", "a JSON object", "Shown to every node",
       [](Settings& s, const Value& v) { return set_object(s.app.metadata, v); }},
      {"logLevel", "LOGLEVEL", "trace, debug, info, warn, error, fatal or off", "What is logged",
       [](Settings& s, const Value& v) { return set_log_level(s.app.log_level, v); }},
      {"requestTimeout", "REQUEST_TIMEOUT", kMs, "Of calls without a timeout of their own; 0: none",
       [](Settings& s, const Value& v) { return set_ms(s.app.broker.request_timeout, v); }},
      {"maxCallLevel", "MAX_CALL_LEVEL", "0 or more", "Deepest nested call; 0: no limit",
       [](Settings& s, const Value& v) { return set_integer(s.app.broker.max_call_level, v, 0, 1'000'000); }},
      {"heartbeatInterval", "HEARTBEAT_INTERVAL", kSeconds, "Between heartbeats on a bus; 0: none",
       [](Settings& s, const Value& v) { return set_seconds(s.app.broker.heartbeat.interval, v); }},
      {"heartbeatTimeout", "HEARTBEAT_TIMEOUT", kSeconds, "Silence after which a node is unavailable",
       [](Settings& s, const Value& v) { return set_seconds(s.app.broker.heartbeat.timeout, v); }},
      {"cleanOfflineNodes", "CLEAN_OFFLINE_NODES", kSeconds,
       "After which a node that is offline is forgotten",
       [](Settings& s, const Value& v) {
         return set_seconds(s.app.broker.heartbeat.clean_offline_nodes, v);
       }},
      {"disableBalancer", "DISABLE_BALANCER", kFlag, "Let the transporter spread calls and events",
       [](Settings& s, const Value& v) { return set_flag(s.app.broker.disable_balancer, v); }},
      {"dependencyTimeout", "DEPENDENCY_TIMEOUT", kMs, "Of services that wait for others; 0: for ever",
       [](Settings& s, const Value& v) { return set_ms(s.app.broker.dependency_timeout, v); }},
      {"internalServices", "INTERNAL_SERVICES", kFlag, "Offer $node",
       [](Settings& s, const Value& v) { return set_flag(s.app.broker.internal_services, v); }},
      {"sendStack", "SEND_STACK", kFlag, "Let the stacks of failed handlers cross to peers",
       [](Settings& s, const Value& v) { return set_flag(s.app.broker.send_stack, v); }},
      {"registry.strategy", "STRATEGY", "the name of a strategy", "How an endpoint is chosen",
       [](Settings& s, const Value& v) { return set_text(s.app.broker.registry.strategy, v); }},
      {"registry.strategyOptions", "STRATEGY_OPTIONS", "a JSON object", "Of the strategy",
       [](Settings& s, const Value& v) { return set_object(s.app.broker.registry.strategy_options, v); }},
      {"registry.strategyOptions.shardKey", "SHARD_KEY", kText, "Shard: path in params, or #path in meta",
       [](Settings& s, const Value& v) {
         std::string key;
         if (!set_text(key, v)) return false;
         s.app.broker.registry.strategy_options.set("shardKey", key);
         return true;
       }},
      {"registry.preferLocal", "PREFER_LOCAL", kFlag, "Take a local endpoint before any other",
       [](Settings& s, const Value& v) { return set_flag(s.app.broker.registry.prefer_local, v); }},
      {"registry.stopDelay", "STOP_DELAY", kMs, "Between saying goodbye and refusing requests",
       [](Settings& s, const Value& v) { return set_ms(s.app.broker.registry.stop_delay, v); }},
      {"retryPolicy.enabled", "RETRY_ENABLED", kFlag, "Try failed calls again",
       [](Settings& s, const Value& v) { return set_flag(s.app.broker.retry.enabled, v); }},
      {"retryPolicy.retries", "RETRIES", "0 to 100", "Further tries; also turns the policy on",
       [](Settings& s, const Value& v) {
         if (!set_integer(s.app.broker.retry.retries, v, 0, 100)) return false;
         s.app.broker.retry.enabled = s.app.broker.retry.retries > 0;
         return true;
       }},
      {"retryPolicy.delay", "RETRY_DELAY", kMs, "First pause",
       [](Settings& s, const Value& v) { return set_ms(s.app.broker.retry.delay, v); }},
      {"retryPolicy.maxDelay", "RETRY_MAX_DELAY", kMs, "Longest pause",
       [](Settings& s, const Value& v) { return set_ms(s.app.broker.retry.max_delay, v); }},
      {"retryPolicy.factor", "RETRY_FACTOR", "1 or more", "Growth of the pauses",
       [](Settings& s, const Value& v) {
         if (!v.is_number() || !(v.f64() >= 1)) return false;
         s.app.broker.retry.factor = v.f64();
         return true;
       }},
      {"circuitBreaker.enabled", "CIRCUIT_BREAKER_ENABLED", kFlag, "Take endpoints out that fail too often",
       [](Settings& s, const Value& v) { return set_flag(s.app.broker.circuit_breaker.enabled, v); }},
      {"circuitBreaker.threshold", "CIRCUIT_BREAKER_THRESHOLD", "above 0, at most 1", "Share of failures",
       [](Settings& s, const Value& v) { return set_share(s.app.broker.circuit_breaker.threshold, v, 1); }},
      {"circuitBreaker.windowTime", "CIRCUIT_BREAKER_WINDOW_TIME", kSeconds, "Calls of so long count",
       [](Settings& s, const Value& v) { return set_seconds(s.app.broker.circuit_breaker.window, v); }},
      {"circuitBreaker.minRequestCount", "CIRCUIT_BREAKER_MIN_REQUEST_COUNT", "1 or more", "Never with fewer",
       [](Settings& s, const Value& v) {
         return set_integer(s.app.broker.circuit_breaker.min_request_count, v, 1, INT32_MAX);
       }},
      {"circuitBreaker.halfOpenTime", "CIRCUIT_BREAKER_HALF_OPEN_TIME", kMs, "Until one call probes",
       [](Settings& s, const Value& v) { return set_ms(s.app.broker.circuit_breaker.half_open_time, v); }},
      {"outlierEjection.enabled", "OUTLIER_EJECTION_ENABLED", kFlag, "Take out the endpoints that fail alone",
       [](Settings& s, const Value& v) { return set_flag(s.app.broker.outlier.enabled, v); }},
      {"outlierEjection.maxEjectionPercent", "OUTLIER_EJECTION_MAX_PERCENT", "above 0, at most 100",
       "Of an action's endpoints, never more",
       [](Settings& s, const Value& v) {
         return set_share(s.app.broker.outlier.max_ejection_percent, v, 100);
       }},
      {"bulkhead.enabled", "BULKHEAD_ENABLED", kFlag, "Limit the runs of each handler",
       [](Settings& s, const Value& v) { return set_flag(s.app.broker.bulkhead.enabled, v); }},
      {"bulkhead.concurrency", "BULKHEAD_CONCURRENCY", "1 or more", "Runs at once",
       [](Settings& s, const Value& v) {
         return set_integer(s.app.broker.bulkhead.concurrency, v, 1, INT32_MAX);
       }},
      {"bulkhead.maxQueueSize", "BULKHEAD_MAX_QUEUE_SIZE", "0 or more", "That wait; 0: none",
       [](Settings& s, const Value& v) {
         return set_integer(s.app.broker.bulkhead.queue_max, v, 0, INT32_MAX);
       }},
      {"tracking.enabled", "TRACKING_ENABLED", kFlag, "Wait for running calls when stopping",
       [](Settings& s, const Value& v) { return set_flag(s.app.broker.tracking.enabled, v); }},
      {"tracking.shutdownTimeout", "SHUTDOWN_TIMEOUT", kMs, "At most this long",
       [](Settings& s, const Value& v) { return set_ms(s.app.broker.tracking.shutdown_timeout, v); }},
      {"transit.maxQueueSize", "MAX_QUEUE_SIZE", "1 or more", "Requests that may wait for an answer",
       [](Settings& s, const Value& v) {
         return set_integer(s.app.broker.transit.pending_requests_max, v, 1, INT32_MAX);
       }},
      {"transit.disableVersionCheck", "DISABLE_VERSION_CHECK", kFlag, "Accept other protocol versions",
       [](Settings& s, const Value& v) { return set_flag(s.app.broker.transit.disable_version_check, v); }},
      {"transit.serviceChangedDebounceTime", "SERVICE_CHANGED_DEBOUNCE_TIME", kMs,
       "Bursts of changed services are announced together",
       [](Settings& s, const Value& v) { return set_ms(s.app.broker.registry.announce_debounce, v); }},
      {"gossip.period", "GOSSIP_PERIOD", "seconds, 0.1 or more", "Between rounds of gossip (TCP)",
       [](Settings& s, const Value& v) { return set_seconds(s.app.broker.gossip.period, v); }},
      {"tcp.host", "TCP_HOST", "an address", "Interface to listen on; empty: all",
       [](Settings& s, const Value& v) { return set_text(s.app.tcp.host, v); }},
      {"tcp.port", "TCP_PORT", "0 to 65535", "Port to listen on; 0: any",
       [](Settings& s, const Value& v) { return set_integer(s.app.tcp.port, v, 0, 65535); }},
      {"tcp.urls", "TCP_URLS", "host:port/nodeID,… or file://path", "Nodes known from the start",
       [](Settings& s, const Value& v) { return set_urls(s.app.tcp.urls, v); }},
      {"tcp.useHostname", "TCP_USE_HOSTNAME", kFlag, "Let others dial this node by its host name",
       [](Settings& s, const Value& v) { return set_flag(s.app.tcp.use_hostname, v); }},
      {"tcp.udpDiscovery", "UDP_DISCOVERY", kFlag, "Find nodes by datagram",
       [](Settings& s, const Value& v) { return set_flag(s.app.tcp.udp_discovery, v); }},
      {"tcp.udpPort", "UDP_PORT", "1 to 65535", "Of discovery",
       [](Settings& s, const Value& v) { return set_integer(s.app.tcp.udp_port, v, 1, 65535); }},
      {"tcp.udpMulticast", "UDP_MULTICAST", "an IPv4 group, or empty", "Multicast group of discovery",
       [](Settings& s, const Value& v) { return set_text(s.app.tcp.udp_multicast, v); }},
      {"tcp.udpMulticastTTL", "UDP_MULTICAST_TTL", "1 to 255", "Routers that its datagrams may pass, and one",
       [](Settings& s, const Value& v) { return set_integer(s.app.tcp.udp_multicast_ttl, v, 1, 255); }},
      {"tcp.udpBroadcast", "UDP_BROADCAST", kFlag, "Discovery by broadcast",
       [](Settings& s, const Value& v) { return set_flag(s.app.tcp.udp_broadcast, v); }},
      {"tcp.udpBroadcastAddresses", "UDP_BROADCAST_ADDRESSES", "IPv4 addresses, a list or comma separated",
       "Instead of those of every interface",
       [](Settings& s, const Value& v) { return set_list(s.app.tcp.udp_broadcast_addresses, v); }},
      {"tcp.udpBindAddress", "UDP_BIND_ADDRESS", "an IPv4 address", "The one interface of discovery",
       [](Settings& s, const Value& v) { return set_text(s.app.tcp.udp_bind_address, v); }},
      {"tcp.udpPeriod", "UDP_PERIOD", kSeconds, "Between announcements",
       [](Settings& s, const Value& v) { return set_seconds(s.app.tcp.udp_period, v); }},
      {"tcp.udpReuseAddr", "UDP_REUSE_ADDR", kFlag, "Share the port with other nodes of this host",
       [](Settings& s, const Value& v) { return set_flag(s.app.tcp.udp_reuse_addr, v); }},
      {"tcp.udpMaxDiscovery", "UDP_MAX_DISCOVERY", "0 or more", "Announcements to make; 0: without end",
       [](Settings& s, const Value& v) { return set_integer(s.app.tcp.udp_max_discovery, v, 0, INT32_MAX); }},
      {"tcp.maxConnections", "TCP_MAX_CONNECTIONS", "0 or more", "Outgoing connections; 0: no limit",
       [](Settings& s, const Value& v) { return set_integer(s.app.tcp.max_connections, v, 0, INT32_MAX); }},
      {"tcp.maxAccepted", "TCP_MAX_ACCEPTED", "1 or more", "Incoming connections",
       [](Settings& s, const Value& v) { return set_integer(s.app.tcp.max_accepted, v, 1, INT32_MAX); }},
      {"tcp.maxPacketSize", "TCP_MAX_PACKET_SIZE", "bytes, 4096 or more", "Of one packet that comes in",
       [](Settings& s, const Value& v) {
         return set_integer(s.app.tcp.max_packet_size, v, 4096, INT32_MAX);
       }},
      {"tcp.queueBytesMax", "TCP_QUEUE_BYTES_MAX", "bytes, 4096 or more",
       "Waiting for one peer; above it sends are refused",
       [](Settings& s, const Value& v) {
         return set_integer(s.app.tcp.queue_bytes_max, v, 4096, INT64_MAX);
       }},
      {"tcp.connectTimeout", "TCP_CONNECT_TIMEOUT", kMs, "Of a connection that is being made",
       [](Settings& s, const Value& v) { return set_ms(s.app.tcp.connect_timeout, v); }},
      {"tcp.userTimeout", "TCP_USER_TIMEOUT", kMs, "Bytes unacknowledged for so long end a connection",
       [](Settings& s, const Value& v) { return set_ms(s.app.tcp.user_timeout, v); }},
      {"tcp.keepaliveIdle", "TCP_KEEPALIVE_IDLE", kMs, "Silence before probes; 0: none",
       [](Settings& s, const Value& v) { return set_ms(s.app.tcp.keepalive_idle, v); }},
      {"nats.user", "NATS_USER", kText, "Credentials",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.user, v); }},
      {"nats.password", "NATS_PASSWORD", kText, "Credentials",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.password, v); }},
      {"nats.token", "NATS_TOKEN", kText, "Credentials",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.token, v); }},
      {"nats.credentialsFile", "NATS_CREDENTIALS", "a file", "User JWT and seed",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.credentials_file, v); }},
      {"nats.nkey", "NATS_NKEY", kText, "Public key that belongs to the seed",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.nkey, v); }},
      {"nats.nkeySeedFile", "NATS_NKEY_SEED", "a file", "Its seed",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.nkey_seed_file, v); }},
      {"nats.tls", "NATS_TLS", kFlag, "Encrypt",
       [](Settings& s, const Value& v) { return set_flag(s.app.nats.tls, v); }},
      {"nats.tlsCaFile", "NATS_TLS_CA", "a PEM file", "Whom to trust",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.tls_ca_file, v); }},
      {"nats.tlsCertFile", "NATS_TLS_CERT", "a PEM file", "Our certificate",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.tls_cert_file, v); }},
      {"nats.tlsKeyFile", "NATS_TLS_KEY", "a PEM file", "Its key",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.tls_key_file, v); }},
      {"nats.tlsVerify", "NATS_TLS_VERIFY", kFlag, "Check the server's certificate",
       [](Settings& s, const Value& v) { return set_flag(s.app.nats.tls_verify, v); }},
      {"nats.tlsServerName", "NATS_TLS_SERVER_NAME", kText, "The name in the server's certificate",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.tls_server_name, v); }},
      {"nats.name", "NATS_NAME", kText, "What the server's monitor shows",
       [](Settings& s, const Value& v) { return set_text(s.app.nats.name, v); }},
      {"nats.connectTimeout", "NATS_CONNECT_TIMEOUT", kMs, "For each server",
       [](Settings& s, const Value& v) { return set_ms(s.app.nats.connect_timeout, v); }},
      {"nats.reconnectWaitMax", "NATS_RECONNECT_WAIT_MAX", kMs, "Longest pause between attempts",
       [](Settings& s, const Value& v) { return set_ms(s.app.nats.reconnect_wait_max, v); }},
      {"nats.pingInterval", "NATS_PING_INTERVAL", kMs, "A server that is silent for twice as long is lost",
       [](Settings& s, const Value& v) { return set_ms(s.app.nats.ping_interval, v); }},
      {"nats.queueBytesMax", "NATS_QUEUE_BYTES_MAX", "bytes, 4096 or more",
       "Of what the server has not taken yet",
       [](Settings& s, const Value& v) {
         return set_integer(s.app.nats.queue_bytes_max, v, 4096, INT64_MAX);
       }},
      {"instances", "INSTANCES", "1 to 256", "Worker processes",
       [](Settings& s, const Value& v) { return set_integer(s.instances, v, 1, 256); }},
      {"services", "SERVICES", "names or patterns, comma separated", "What to load, in serviceDir",
       [](Settings& s, const Value& v) { return set_text(s.services, v); }},
      {"serviceDir", "SERVICEDIR", "a folder", "Where services are",
       [](Settings& s, const Value& v) { return set_text(s.service_dir, v); }},
  };
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::vector<OptionSpec> kTable = make_table();
  return kTable;
}

Result<> set_option(Settings& settings, std::string_view path, const Value& value, std::string_view source) {
  const auto table = option_table();
  const auto spec =
      std::find_if(table.begin(), table.end(), [path](const OptionSpec& s) { return s.path == path; });
  if (spec == table.end()) {
    return Error::broker_options(std::string(source) + ": option '" + std::string(path) +
                                 "' is unknown. See weft-runner --help-options for all there are.");
  }
  if (spec->set(settings, value)) return {};
  return Error::broker_options(std::string(source) + ": option '" + std::string(path) + "' takes " +
                               std::string(spec->takes) + ", not " + to_json(value) + ".");
}

}  // namespace weft::runner
