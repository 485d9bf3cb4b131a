// From files and the environment to the settings of a node, and which modules are meant.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lib/protocol/serializer.h"
#include "tools/runner/config_file.h"
#include "tools/runner/environment.h"
#include "tools/runner/option_table.h"
#include "tools/runner/service_selection.h"

namespace weft::runner {

namespace {

using namespace std::chrono_literals;

struct Case {
  std::string variable;
  const char* text;
  std::function<bool(const Settings&)> taken;
};

// Every option there is, in the order of the table.
std::vector<Case> every_option() {
  return {
      {"NODEID", "007", [](auto& s) { return s.app.node_id == "007"; }},
      {"NAMESPACE", "true", [](auto& s) { return s.app.name_space == "true"; }},
      {"TRANSPORTER", "nats://n:4222", [](auto& s) { return s.app.transporter == "nats://n:4222"; }},
      {"SERIALIZER", "MsgPack", [](auto& s) { return s.app.broker.serializer == "MsgPack"; }},
      {"METADATA", R"({"zone":"eu"})", [](auto& s) { return s.app.metadata["zone"].str_or("") == "eu"; }},
      {"LOGLEVEL", "warn", [](auto& s) { return s.app.log_level == LogLevel::kWarn; }},
      {"REQUEST_TIMEOUT", "1500", [](auto& s) { return s.app.broker.request_timeout == 1500ms; }},
      {"MAX_CALL_LEVEL", "9", [](auto& s) { return s.app.broker.max_call_level == 9; }},
      {"HEARTBEAT_INTERVAL", "0.5", [](auto& s) { return s.app.broker.heartbeat.interval == 500ms; }},
      {"HEARTBEAT_TIMEOUT", "2", [](auto& s) { return s.app.broker.heartbeat.timeout == 2s; }},
      {"CLEAN_OFFLINE_NODES", "60",
       [](auto& s) { return s.app.broker.heartbeat.clean_offline_nodes == 60s; }},
      {"DISABLE_BALANCER", "TRUE", [](auto& s) { return s.app.broker.disable_balancer; }},
      {"DEPENDENCY_TIMEOUT", "10", [](auto& s) { return s.app.broker.dependency_timeout == 10ms; }},
      {"INTERNAL_SERVICES", "false", [](auto& s) { return !s.app.broker.internal_services; }},
      {"SEND_STACK", "true", [](auto& s) { return s.app.broker.send_stack; }},
      {"STRATEGY", "Random", [](auto& s) { return s.app.broker.registry.strategy == "Random"; }},
      {"STRATEGY_OPTIONS", R"({"sampleCount":2})",
       [](auto& s) { return s.app.broker.registry.strategy_options["sampleCount"].i64_or(0) == 2; }},
      {"SHARD_KEY", "#tenant",
       [](auto& s) { return s.app.broker.registry.strategy_options["shardKey"].str_or("") == "#tenant"; }},
      {"PREFER_LOCAL", "False", [](auto& s) { return !s.app.broker.registry.prefer_local; }},
      {"STOP_DELAY", "7", [](auto& s) { return s.app.broker.registry.stop_delay == 7ms; }},
      {"RETRY_ENABLED", "true", [](auto& s) { return s.app.broker.retry.enabled; }},
      {"RETRIES", "3", [](auto& s) { return s.app.broker.retry.enabled && s.app.broker.retry.retries == 3; }},
      {"RETRY_DELAY", "5", [](auto& s) { return s.app.broker.retry.delay == 5ms; }},
      {"RETRY_MAX_DELAY", "50", [](auto& s) { return s.app.broker.retry.max_delay == 50ms; }},
      {"RETRY_FACTOR", "1.5", [](auto& s) { return s.app.broker.retry.factor == 1.5; }},
      {"CIRCUIT_BREAKER_ENABLED", "true", [](auto& s) { return s.app.broker.circuit_breaker.enabled; }},
      {"CIRCUIT_BREAKER_THRESHOLD", "0.25",
       [](auto& s) { return s.app.broker.circuit_breaker.threshold == 0.25; }},
      {"CIRCUIT_BREAKER_WINDOW_TIME", "7", [](auto& s) { return s.app.broker.circuit_breaker.window == 7s; }},
      {"CIRCUIT_BREAKER_MIN_REQUEST_COUNT", "3",
       [](auto& s) { return s.app.broker.circuit_breaker.min_request_count == 3; }},
      {"CIRCUIT_BREAKER_HALF_OPEN_TIME", "21",
       [](auto& s) { return s.app.broker.circuit_breaker.half_open_time == 21ms; }},
      {"OUTLIER_EJECTION_ENABLED", "true", [](auto& s) { return s.app.broker.outlier.enabled; }},
      {"OUTLIER_EJECTION_MAX_PERCENT", "15",
       [](auto& s) { return s.app.broker.outlier.max_ejection_percent == 15; }},
      {"BULKHEAD_ENABLED", "true", [](auto& s) { return s.app.broker.bulkhead.enabled; }},
      {"BULKHEAD_CONCURRENCY", "4", [](auto& s) { return s.app.broker.bulkhead.concurrency == 4; }},
      {"BULKHEAD_MAX_QUEUE_SIZE", "13", [](auto& s) { return s.app.broker.bulkhead.queue_max == 13; }},
      {"TRACKING_ENABLED", "false", [](auto& s) { return !s.app.broker.tracking.enabled; }},
      {"SHUTDOWN_TIMEOUT", "100", [](auto& s) { return s.app.broker.tracking.shutdown_timeout == 100ms; }},
      {"MAX_QUEUE_SIZE", "11", [](auto& s) { return s.app.broker.transit.pending_requests_max == 11; }},
      {"DISABLE_VERSION_CHECK", "true", [](auto& s) { return s.app.broker.transit.disable_version_check; }},
      {"SERVICE_CHANGED_DEBOUNCE_TIME", "12",
       [](auto& s) { return s.app.broker.registry.announce_debounce == 12ms; }},
      {"GOSSIP_PERIOD", "0.3", [](auto& s) { return s.app.broker.gossip.period == 300ms; }},
      {"TCP_HOST", "10.0.0.1", [](auto& s) { return s.app.tcp.host == "10.0.0.1"; }},
      {"TCP_PORT", "6001", [](auto& s) { return s.app.tcp.port == 6001; }},
      {"TCP_URLS", "a:1/b", [](auto& s) { return s.app.tcp.urls.str_or("") == "a:1/b"; }},
      {"TCP_USE_HOSTNAME", "false", [](auto& s) { return !s.app.tcp.use_hostname; }},
      {"UDP_DISCOVERY", "false", [](auto& s) { return !s.app.tcp.udp_discovery; }},
      {"UDP_PORT", "4545", [](auto& s) { return s.app.tcp.udp_port == 4545; }},
      {"UDP_MULTICAST", "239.1.1.1", [](auto& s) { return s.app.tcp.udp_multicast == "239.1.1.1"; }},
      {"UDP_MULTICAST_TTL", "4", [](auto& s) { return s.app.tcp.udp_multicast_ttl == 4; }},
      {"UDP_BROADCAST", "true", [](auto& s) { return s.app.tcp.udp_broadcast; }},
      {"UDP_BROADCAST_ADDRESSES", "10.0.0.255,10.0.1.255",
       [](auto& s) {
         return s.app.tcp.udp_broadcast_addresses == std::vector<std::string>{"10.0.0.255", "10.0.1.255"};
       }},
      {"UDP_BIND_ADDRESS", "10.0.0.1", [](auto& s) { return s.app.tcp.udp_bind_address == "10.0.0.1"; }},
      {"UDP_PERIOD", "3", [](auto& s) { return s.app.tcp.udp_period == 3s; }},
      {"UDP_REUSE_ADDR", "false", [](auto& s) { return !s.app.tcp.udp_reuse_addr; }},
      {"UDP_MAX_DISCOVERY", "2", [](auto& s) { return s.app.tcp.udp_max_discovery == 2; }},
      {"TCP_MAX_CONNECTIONS", "5", [](auto& s) { return s.app.tcp.max_connections == 5; }},
      {"TCP_MAX_ACCEPTED", "6", [](auto& s) { return s.app.tcp.max_accepted == 6; }},
      {"TCP_MAX_PACKET_SIZE", "8192", [](auto& s) { return s.app.tcp.max_packet_size == 8192; }},
      {"TCP_QUEUE_BYTES_MAX", "9999999", [](auto& s) { return s.app.tcp.queue_bytes_max == 9999999; }},
      {"TCP_CONNECT_TIMEOUT", "40", [](auto& s) { return s.app.tcp.connect_timeout == 40ms; }},
      {"TCP_USER_TIMEOUT", "41", [](auto& s) { return s.app.tcp.user_timeout == 41ms; }},
      {"TCP_KEEPALIVE_IDLE", "42", [](auto& s) { return s.app.tcp.keepalive_idle == 42ms; }},
      {"NATS_USER", "ann", [](auto& s) { return s.app.nats.user == "ann"; }},
      {"NATS_PASSWORD", "0042", [](auto& s) { return s.app.nats.password == "0042"; }},
      {"NATS_TOKEN", "t", [](auto& s) { return s.app.nats.token == "t"; }},
      {"NATS_CREDENTIALS", "/c", [](auto& s) { return s.app.nats.credentials_file == "/c"; }},
      {"NATS_NKEY", "U", [](auto& s) { return s.app.nats.nkey == "U"; }},
      {"NATS_NKEY_SEED", "/s", [](auto& s) { return s.app.nats.nkey_seed_file == "/s"; }},
      {"NATS_TLS", "true", [](auto& s) { return s.app.nats.tls; }},
      {"NATS_TLS_CA", "/ca", [](auto& s) { return s.app.nats.tls_ca_file == "/ca"; }},
      {"NATS_TLS_CERT", "/cert", [](auto& s) { return s.app.nats.tls_cert_file == "/cert"; }},
      {"NATS_TLS_KEY", "/key", [](auto& s) { return s.app.nats.tls_key_file == "/key"; }},
      {"NATS_TLS_VERIFY", "false", [](auto& s) { return !s.app.nats.tls_verify; }},
      {"NATS_TLS_SERVER_NAME", "n", [](auto& s) { return s.app.nats.tls_server_name == "n"; }},
      {"NATS_NAME", "me", [](auto& s) { return s.app.nats.name == "me"; }},
      {"NATS_CONNECT_TIMEOUT", "31", [](auto& s) { return s.app.nats.connect_timeout == 31ms; }},
      {"NATS_RECONNECT_WAIT_MAX", "32", [](auto& s) { return s.app.nats.reconnect_wait_max == 32ms; }},
      {"NATS_PING_INTERVAL", "33", [](auto& s) { return s.app.nats.ping_interval == 33ms; }},
      {"NATS_QUEUE_BYTES_MAX", "5000", [](auto& s) { return s.app.nats.queue_bytes_max == 5000; }},
      {"INSTANCES", "4", [](auto& s) { return s.instances == 4; }},
      {"SERVICES", "a,b", [](auto& s) { return s.services == "a,b"; }},
      {"SERVICEDIR", "/srv", [](auto& s) { return s.service_dir == "/srv"; }},
  };
}

// Sets one variable; gives the error or nothing.
std::string set(Settings& settings, const std::string& variable, const std::string& text) {
  const std::vector<std::string> entries = {variable + "=" + text};
  const auto applied = apply_environment(settings, entries);
  return applied ? "" : applied.error().message();
}

std::string in_capitals(std::string_view path) {
  std::string name;
  for (const char c : path) name += c == '.' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

bool has(const std::string& text, std::string_view piece) {
  return text.find(piece) != text.npos;
}

}  // namespace

TEST_SUITE("runner settings") {
  TEST_CASE("every option is taken from the environment, by its short name and by its path") {
    const std::vector<Case> cases = every_option();
    const auto table = option_table();
    REQUIRE(table.size() == cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& one = cases[i];
      CAPTURE(one.variable);
      CHECK(table[i].env == one.variable);
      for (const std::string& name : {one.variable, in_capitals(table[i].path)}) {
        Settings settings;
        CHECK(!one.taken(settings));
        CHECK(set(settings, name, one.text) == "");
        CHECK(one.taken(settings));
      }
      Settings empty;
      CHECK(set(empty, one.variable, "") == "");
      CHECK(!one.taken(empty));
    }
  }

  TEST_CASE("a value of the wrong kind names the option, where it stands, and what is allowed") {
    for (const OptionSpec& spec : option_table()) {
      CAPTURE(spec.path);
      Settings settings;
      const auto refused = set_option(settings, spec.path, Value{{"x", arr(1)}}, "here");
      const bool takes_any_object = spec.takes == "a JSON object" || spec.path == "tcp.urls";
      CHECK(refused.ok() == takes_any_object);
      if (refused.ok()) continue;
      CHECK(has(refused.error().message(),
                "here: option '" + std::string(spec.path) + "' takes " + std::string(spec.takes) + ", not "));
    }
    Settings settings;
    CHECK(has(set(settings, "UDP_MULTICAST_TTL", "0"), "1 to 255"));
    CHECK(has(set(settings, "RETRIES", "1.5"), "0 to 100"));
    CHECK(has(set(settings, "GOSSIP_PERIOD", "-1"), "seconds"));
    CHECK(has(set(settings, "TCP_PORT", "65536"), "environment variable TCP_PORT"));
    CHECK(has(set(settings, "WEFT_TCP__PORT", "x"), "WEFT_TCP__PORT"));
  }

  TEST_CASE("long names: two underscores go one level down, one begins the next word") {
    CHECK(path_of_variable("REGISTRY__PREFER_LOCAL") == "registry.preferLocal");
    CHECK(path_of_variable("NODE_ID") == "nodeID");
    Settings settings;
    CHECK(set(settings, "MOL_RETRY_POLICY__MAX_DELAY", "9") == "");
    CHECK(settings.app.broker.retry.max_delay == 9ms);
    const std::vector<std::string> entries = {"WEFT_NO_SUCH=1", "HOME=/root", "no equals sign"};
    const auto warned = apply_environment(settings, entries);
    REQUIRE(warned.ok());
    REQUIRE(warned->size() == 1);
    CHECK(has(warned->front(), "WEFT_NO_SUCH names no option ('noSuch')"));
  }

  TEST_CASE("a file's tree is taken whole; what it has that is unknown is an error") {
    Settings settings;
    const Value tree{
        {"nodeID", 7},
        {"registry", {{"strategy", "Shard"}, {"strategyOptions", {{"shardKey", "name"}}}}},
        {"tcp", {{"urls", arr("a:1/b", "c:2/d")}, {"udpBroadcastAddresses", arr("10.0.0.255")}}}};
    REQUIRE(apply_config(settings, tree, "my.toml").ok());
    CHECK(settings.app.node_id == "7");
    CHECK(settings.app.broker.registry.strategy_options["shardKey"].str() == "name");
    CHECK(settings.app.tcp.urls.size() == 2);
    const auto unknown = apply_config(settings, Value{{"tcp", {{"prot", 1}}}}, "my.toml");
    REQUIRE(!unknown.ok());
    CHECK(has(unknown.error().message(), "my.toml: option 'tcp.prot' is unknown"));
  }

  TEST_CASE("globs: '*' and '?' stay within a folder, '**' does not") {
    CHECK(matches_glob("a/b/c.so", "**/*.so"));
    CHECK(matches_glob("c.so", "**/*.so"));
    CHECK(matches_glob("a/b/c.so", "a/**"));
    CHECK(matches_glob("a/b.so", "a/?.so"));
    CHECK(!matches_glob("a/b/c.so", "a/*.so"));
    CHECK(!matches_glob("a/b.so", "a?b.so"));
    CHECK(!matches_glob("a.so", "a.so.bak"));
    CHECK(!matches_glob("", "?"));
  }
}

}  // namespace weft::runner
