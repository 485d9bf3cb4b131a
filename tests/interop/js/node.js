"use strict";

// A Moleculer node as a process: `node node.js SERVICE_FILE...`, configured by the environment
// like weft-runner. SIGTERM stops it gracefully; Moleculer itself sees to that.

const path = require("node:path");

const deps = require("../lib/deps");
const { brokerOptions } = require("./options");

async function main() {
  const { ServiceBroker } = deps.moleculer();
  const broker = new ServiceBroker(await brokerOptions(process.env));
  for (const file of process.argv.slice(2)) broker.createService(require(path.resolve(file)));
  await broker.start();
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
