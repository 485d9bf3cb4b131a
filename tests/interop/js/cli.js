"use strict";

// Stands in for the `weft` command line under --weft-as-js, with the few commands the scenarios
// use: an observer node that joins, does one thing and leaves.

const deps = require("../lib/deps");
const { until } = require("../lib/wait");
const { brokerOptions } = require("./options");

const COMMANDS = {
  ping: async (broker, [nodeID]) => {
    const pong = await broker.ping(nodeID, 5000);
    if (!pong) throw new Error(`no answer from ${nodeID}`);
    return pong;
  },
  call: async (broker, [action, params]) => {
    await broker.waitForServices(action.split(".").slice(0, -1).join("."), 20000, 50);
    return broker.call(action, params && JSON.parse(params));
  },
  nodes: async (broker) => broker.call("$node.list"),
  services: async (broker) => broker.call("$node.services")
};

async function main() {
  const env = { ...process.env };
  const words = [];
  const args = process.argv.slice(2);
  for (let i = 0; i < args.length; i++) {
    if (args[i] === "--transporter") env.TRANSPORTER = args[++i];
    else if (args[i] === "--namespace") env.NAMESPACE = args[++i];
    else if (args[i] === "--timeout") i++;
    else if (args[i] !== "--json") words.push(args[i]);
  }
  const [command, ...rest] = words;
  const { ServiceBroker } = deps.moleculer();
  const broker = new ServiceBroker(await brokerOptions(env));
  await broker.start();
  const others = () => broker.registry.nodes.list({ onlyAvailable: true }).length > 1;
  await until("another node", others, { ms: 20000 });
  console.log(JSON.stringify(await COMMANDS[command](broker, rest)));
  await broker.stop();
}

main().then(
  () => process.exit(0),
  (err) => {
    console.error(err.message);
    process.exit(1);
  }
);
