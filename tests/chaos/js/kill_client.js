"use strict";

// The twin of ../kill_client.cpp:
//   node kill_client.js TRANSPORTER PORT WORKERS VICTIM_PID SIGNAL SECONDS

const path = require("node:path");
const { performance } = require("node:perf_hooks");

const deps = require(path.join(__dirname, "../../interop/lib/deps"));

const [transporter, port, workers, victim, signal, seconds] = process.argv.slice(2);
const rate = 500;
const before = 2000;

async function main() {
  const { ServiceBroker } = deps.moleculer();
  const options = {
    nodeID: "client",
    logger: false,
    transporter:
      transporter === "TCP"
        ? { type: "TCP", options: { udpDiscovery: false, port: Number(port), useHostname: false } }
        : transporter,
  };
  if (process.env.HEARTBEAT_INTERVAL) options.heartbeatInterval = Number(process.env.HEARTBEAT_INTERVAL);
  if (process.env.HEARTBEAT_TIMEOUT) options.heartbeatTimeout = Number(process.env.HEARTBEAT_TIMEOUT);
  const broker = new ServiceBroker(options);
  await broker.start();
  const offered = () =>
    broker.registry.getNodeList({ onlyAvailable: true, withServices: true }).filter((node) =>
      node.services.some((service) => service.name === "chaos")
    ).length;
  await new Promise((resolve) => {
    const timer = setInterval(() => offered() >= Number(workers) && resolve(clearInterval(timer)), 20);
  });

  const began = performance.now();
  let signalledAt = began + before;
  let signalled = false;
  let made = 0;
  let open = 0;
  const failures = [];
  const one = async () => {
    const begun = performance.now();
    try {
      await broker.call("chaos.work", { ms: 5 }, { timeout: 1000, retries: 0 });
    } catch {
      failures.push([begun - signalledAt, performance.now() - signalledAt].map((ms) => Math.round(ms * 10) / 10));
    }
    open -= 1;
  };
  await new Promise((resolve) => {
    const timer = setInterval(() => {
      const now = performance.now();
      if (!signalled && now >= signalledAt) {
        signalledAt = now;
        process.kill(Number(victim), Number(signal));
        signalled = true;
      }
      const isOver = now >= signalledAt + seconds * 1000;
      for (; !isOver && made < ((now - began) / 1000) * rate; ++made) {
        open += 1;
        one();
      }
      if (isOver && open === 0) resolve(clearInterval(timer));
    }, 2);
  });
  const report = JSON.stringify({ made, failures });
  process.stdout.write(`${report}\n`, () => process.exit(0)); // All of it, before the end.
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
