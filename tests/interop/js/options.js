"use strict";

// Broker options from the environment variables that weft-runner takes, so that a node of a
// scenario can be of either kind without the scenario's knowing.

const dns = require("node:dns/promises");
const os = require("node:os");

const isTrue = (text) => /^(true|1|yes|on)$/i.test(text);

function transporterOption(env) {
  const url = env.TRANSPORTER;
  if (!url) return null;
  if (!/^tcp(:\/\/|$)/i.test(url)) return url;
  const options = { gossipPeriod: 1 };
  if (/^tcp:/i.test(url)) options.urls = url;
  if (env.TCP_URLS) options.urls = env.TCP_URLS;
  if (env.TCP_PORT) options.port = Number(env.TCP_PORT);
  if (env.TCP_USE_HOSTNAME) options.useHostname = isTrue(env.TCP_USE_HOSTNAME);
  if (env.UDP_DISCOVERY) options.udpDiscovery = isTrue(env.UDP_DISCOVERY);
  if (env.UDP_PORT) options.udpPort = Number(env.UDP_PORT);
  if (env.UDP_BIND_ADDRESS) options.udpBindAddress = env.UDP_BIND_ADDRESS;
  return { type: "TCP", options };
}

// A peer learned through a third node is dialled by its host name. Where that name leads nowhere
// (some containers), nodes give each other addresses instead.
async function adaptToHost(options) {
  if (options.transporter && options.transporter.type === "TCP") {
    const known = await dns.lookup(os.hostname()).then(() => true, () => false);
    if (!known) options.transporter.options.useHostname = false;
  }
  return options;
}

async function brokerOptions(env) {
  const options = {
    nodeID: env.NODEID,
    namespace: env.NAMESPACE || "",
    transporter: transporterOption(env),
    serializer: env.SERIALIZER || "JSON",
    logger: env.LOGLEVEL ? { type: "Console", options: { colors: false } } : false,
    logLevel: env.LOGLEVEL || "warn",
    metadata: env.METADATA ? JSON.parse(env.METADATA) : {},
    // Shorter than the default second: the scenarios start many nodes.
    transit: { serviceChangedDebounceTime: 100 },
    dependencyInterval: 100,
    registry: {}
  };
  if (env.HEARTBEAT_INTERVAL) options.heartbeatInterval = Number(env.HEARTBEAT_INTERVAL);
  if (env.HEARTBEAT_TIMEOUT) options.heartbeatTimeout = Number(env.HEARTBEAT_TIMEOUT);
  if (env.STRATEGY) options.registry.strategy = env.STRATEGY;
  if (env.SHARD_KEY) options.registry.strategyOptions = { shardKey: env.SHARD_KEY };
  if (env.PREFER_LOCAL) options.registry.preferLocal = isTrue(env.PREFER_LOCAL);
  if (env.DISABLE_BALANCER) options.disableBalancer = isTrue(env.DISABLE_BALANCER);
  if (env.RETRIES) options.retryPolicy = { enabled: true, retries: Number(env.RETRIES) };
  if (env.REQUEST_TIMEOUT) options.requestTimeout = Number(env.REQUEST_TIMEOUT);
  return adaptToHost(options);
}

module.exports = { brokerOptions };
