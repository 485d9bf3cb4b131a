"use strict";

// The same benchmark with Moleculer: `moleculer_bench.js server|client`, settings as JSON in BENCH; see tools/bench.

const { performance } = require("node:perf_hooks");
const path = require("node:path");

const settings = JSON.parse(process.env.BENCH);
const { ServiceBroker } = require(path.join(settings.modules, "node_modules", "moleculer"));

const broker = new ServiceBroker({
  nodeID: `bench-${process.argv[2]}`,
  namespace: "bench",
  logger: false,
  serializer: settings.serializer,
  transporter: settings.nats
    ? settings.nats
    : { type: "TCP", options: { udpDiscovery: false, port: settings.port, urls: settings.urls || null, useHostname: false } },
});

function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

const quantile = (sorted, q) =>
  sorted.length === 0 ? 0 : Math.round(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] * 10000) / 10;

async function lane(params, action, warm, end, tally) {
  for (;;) {
    const start = performance.now();
    if (start >= end) return;
    const result = await broker.call(action, params);
    const now = performance.now();
    if (now < warm) continue;
    tally.calls += 1;
    if (action === "bench.add" && result !== 42) tally.failures += 1;
    tally.latencies.push(now - start);
  }
}

async function client() {
  await broker.waitForServices("bench", 30000, 50);
  for (const payload of settings.payloads) {
    for (const inFlight of settings.inFlight) {
      const text = "x".repeat(payload === "64k" ? 65536 : 1024);
      const [action, params] = payload === "add" ? ["bench.add", { a: 20, b: 22 }] : ["bench.echo", { text }];
      const tally = { calls: 0, failures: 0, latencies: [] };
      const warm = performance.now() + 300;
      const end = warm + settings.seconds * 1000;
      const ownBefore = cpuSeconds();
      const otherBefore = await broker.call("bench.cpu");
      const lanes = [];
      for (let i = 0; i < inFlight; ++i) lanes.push(lane(params, action, warm, end, tally));
      await Promise.all(lanes);
      const cpu = cpuSeconds() - ownBefore + (await broker.call("bench.cpu")) - otherBefore;
      const sorted = Float64Array.from(tally.latencies).sort();
      const total = (tally.calls * (settings.seconds + 0.3)) / settings.seconds;
      const row = {
        name: settings.label,
        payload,
        inFlight,
        callsPerSecond: Math.round(tally.calls / settings.seconds),
        p50us: quantile(sorted, 0.5),
        p90us: quantile(sorted, 0.9),
        p99us: quantile(sorted, 0.99),
        p999us: quantile(sorted, 0.999),
        cpuUsPerCall: Math.round((cpu / total) * 1e8) / 100,
        failures: tally.failures,
      };
      console.log(JSON.stringify(row));
    }
  }
}

async function main() {
  if (process.argv[2] === "server") {
    broker.createService({
      name: "bench",
      actions: {
        add: (ctx) => ctx.params.a + ctx.params.b,
        echo: (ctx) => ctx.params,
        cpu: cpuSeconds,
      },
    });
  }
  await broker.start();
  if (process.argv[2] === "server") return;
  await client();
  await broker.stop();
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
