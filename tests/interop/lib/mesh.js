"use strict";

// One mesh of a scenario: nodes as child processes, of kind `weft` or `js`, and Moleculer brokers
// inside the driver, which call, watch and are called.
//
// All nodes of a mesh share a namespace of their own, and over TCP a list of static addresses.

const path = require("node:path");

const deps = require("./deps");
const probeService = require("../js/probe.service");
const { brokerOptions } = require("../js/options");
const { Child } = require("./children");
const { freePort } = require("./ports");
const { until, within } = require("./wait");

const JS = path.join(__dirname, "..", "js");

let meshes = 0;

// A node as a process. It can be started again under the same name and port.
class ProcessNode {
  constructor(mesh, id, kind, env) {
    this.mesh = mesh;
    this.id = id;
    this.kind = kind;
    this.env = env;
    this.child = null;
  }

  start() {
    const { world } = this.mesh;
    const [command, args] =
      this.kind === "weft"
        ? [world.runner, [world.fixture]]
        : [process.execPath, [
            path.join(JS, "node.js"),
            path.join(JS, "fixture.service.js"),
            path.join(JS, "control.service.js")
          ]];
    this.log = path.join(world.logDir, `${this.mesh.name}-${this.id}.log`);
    this.child = new Child(this.id, command, args, {
      env: { ...process.env, ...this.mesh.env(this.id), ...this.env },
      log: this.log
    });
  }

  terminate() {
    this.child.signal("SIGTERM");
    return this.child.waitExit(20000);
  }

  kill() {
    return this.child.kill();
  }
}

class Mesh {
  // `world`: what holds for the whole run (see run.js). `combo`: {transporter, serializer}.
  constructor(world, combo, name, { ids = [], env = {} } = {}) {
    this.world = world;
    this.combo = combo;
    this.name = `${combo.transporter}-${combo.serializer}-${name}`.toLowerCase();
    this.namespace = `i${process.pid}x${++meshes}`;
    this.ids = ids;
    this.shared = env;
    this.ports = new Map();
    this.nodes = new Map();
    this.brokers = [];
  }

  get isTcp() {
    return this.combo.transporter === "tcp";
  }

  // Hands out the ports. Every node that will ever be in the mesh must be in `ids`.
  async prepare() {
    for (const id of this.ids) this.ports.set(id, await freePort());
    return this;
  }

  address(id) {
    return `tcp://127.0.0.1:${this.ports.get(id)}/${id}`;
  }

  env(id) {
    const env = {
      NODEID: id,
      NAMESPACE: this.namespace,
      SERIALIZER: this.combo.serializer,
      LOGLEVEL: this.world.logLevel
    };
    if (this.isTcp) {
      env.TRANSPORTER = "TCP";
      env.TCP_PORT = String(this.ports.get(id));
      env.TCP_URLS = this.ids.map((each) => this.address(each)).join(",");
      env.UDP_DISCOVERY = "false";
    } else {
      env.TRANSPORTER = this.world.natsUrl;
    }
    return { ...env, ...this.shared };
  }

  // Starts a node of `kind`: "weft" (a stand-in under --weft-as-js) or "js".
  start(id, kind, env = {}) {
    const node = new ProcessNode(this, id, this.world.weftAsJs ? "js" : kind, env);
    this.nodes.set(id, node);
    node.start();
    return node;
  }

  // A Moleculer broker in the driver, with the service `probe` unless told otherwise.
  async broker(id, { env = {}, probe = true } = {}) {
    const moleculer = deps.moleculer();
    const options = await brokerOptions({ ...this.brokerEnv(id), ...env });
    options.skipProcessEventRegistration = true;
    const broker = new moleculer.ServiceBroker(options);
    if (probe) broker.probe = broker.createService(probeService(moleculer));
    broker.lost = new Map(); // nodeID → {unexpected}
    broker.createService({
      name: `watch-${id}`,
      events: {
        "$node.disconnected": (ctx) =>
          broker.lost.set(ctx.params.node.id, { unexpected: ctx.params.unexpected })
      }
    });
    this.brokers.push(broker);
    await within(30000, `start of broker ${id}`, broker.start());
    return broker;
  }

  brokerEnv(id) {
    const env = this.env(id);
    if (!this.world.verbose) delete env.LOGLEVEL;
    return env;
  }

  // Waits until `broker` can call `echo` on each of `ids`, and each of them sees all the others
  // and `broker`.
  async converge(broker, ids = [...this.nodes.keys()], { ms = 60000 } = {}) {
    const wanted = [...ids, broker.nodeID];
    for (const id of ids) {
      await until(`${broker.nodeID} to see ${id}`, () => {
        this.assertAlive(ids);
        return serves(broker, "echo", id);
      }, { ms });
    }
    for (const id of ids) {
      await until(`${id} to see ${wanted.filter((other) => other !== id).join(", ")}`, async () => {
        this.assertAlive(ids);
        const rows = await servicesSeenBy(broker, id);
        return ids.every((other) => rows.some((row) => row.name === "echo" && row.nodeID === other)) &&
          (!broker.probe || rows.some((row) => row.name === "probe" && row.nodeID === broker.nodeID));
      }, { ms });
    }
  }

  assertAlive(ids) {
    for (const id of ids) {
      const { result } = this.nodes.get(id).child;
      if (result) throw new Error(`node ${id} has exited: ${JSON.stringify(result)}`);
    }
  }

  async stop() {
    const brokers = this.brokers.map((broker) => within(20000, `stop of ${broker.nodeID}`, broker.stop()));
    await Promise.allSettled(brokers);
    await Promise.all([...this.nodes.values()].map((node) => node.child.kill()));
  }
}

// Whether `broker` holds `service` of node `id` as usable.
function serves(broker, service, id) {
  return broker.registry
    .getServiceList({ grouping: false, onlyAvailable: true })
    .some((row) => row.fullName === service && row.nodeID === id);
}

// The ungrouped $node.services rows as node `id` sees them.
function servicesSeenBy(broker, id) {
  return broker.call(
    "echo.relay",
    { action: "$node.services", params: { grouping: false, onlyAvailable: true } },
    { nodeID: id, timeout: 5000 }
  );
}

// The $node.list row of `other` as node `id` sees it; nothing when unknown.
async function nodeSeenBy(broker, id, other) {
  const rows = await broker.call("echo.relay", { action: "$node.list", params: {} }, { nodeID: id, timeout: 5000 });
  return rows.find((row) => row.id === other);
}

module.exports = { Mesh, serves, servicesSeenBy, nodeSeenBy };
