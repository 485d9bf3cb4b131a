"use strict";

// What a scenario works with: the mesh, checks, and short forms of the usual calls.

const fs = require("node:fs");

const { Mesh } = require("./mesh");
const { until, within } = require("./wait");

const CHECK_MS = 60000;

const tail = (file) => fs.readFileSync(file, "utf8").split("\n").slice(-12).join("\n");

class Context {
  constructor(world, combo, report) {
    this.world = world;
    this.combo = combo;
    this.report = report;
    this.part = "";
    this.mesh = null;
    this.meshes = [];
    this.ctl = null; // The driver's Moleculer broker in the mesh.
  }

  get isTcp() {
    return this.combo.transporter === "tcp";
  }

  get isJson() {
    return this.combo.serializer === "JSON";
  }

  title(text) {
    return `${this.combo.transporter} ${this.combo.serializer.toLowerCase()} ${this.part}: ${text}`;
  }

  // The mesh of the scenario; further ones by addMesh. All are stopped at its end.
  async openMesh(name, options) {
    this.mesh = await this.addMesh(name, options);
  }

  async addMesh(name, options) {
    const mesh = await new Mesh(this.world, this.combo, name, options).prepare();
    this.meshes.push(mesh);
    return mesh;
  }

  close() {
    return Promise.all(this.meshes.map((mesh) => mesh.stop()));
  }

  // The ends of the nodes' logs, for a scenario that broke off.
  lastWords() {
    const nodes = this.meshes.flatMap((mesh) => [...mesh.nodes.values()]);
    return nodes
      .map((node) => `--- ${node.id} (${node.kind}) ${JSON.stringify(node.child.result)}\n${tail(node.log)}`)
      .join("\n");
  }

  // One line of the report. `body` passes by not throwing.
  async check(text, body) {
    const title = this.title(text);
    try {
      await within(CHECK_MS, "the check", Promise.resolve().then(body));
      this.report.pass(title);
    } catch (err) {
      this.report.fail(title, err);
    }
  }

  // For what Moleculer itself gets wrong, or does not promise: checked on weft alone.
  async checkWeft(text, body) {
    if (this.world.weftAsJs) this.report.skip(this.title(text), "holds for weft only");
    else await this.check(text, body);
  }

  // For checks that need an action which a node may lack.
  async checkIf(id, action, text, body) {
    const rows = await this.ctl.call("$node.actions", { withEndpoints: true });
    const row = rows.find((each) => each.name === action);
    if (row && row.endpoints && row.endpoints.some((endpoint) => endpoint.nodeID === id)) {
      await this.check(text, body);
    } else {
      this.report.skip(this.title(text), `${id} has no ${action}`);
    }
  }

  call(action, params, options) {
    return this.ctl.call(action, params, options);
  }

  // Has node `id` make the call, through its `echo.relay`.
  via(id, action, params, options, callOptions) {
    const order = { action };
    if (params !== undefined) order.params = params;
    if (options !== undefined) order.options = options;
    return this.ctl.call("echo.relay", order, { nodeID: id, ...callOptions });
  }

  // Awaits the failure of a call and returns what its caller gets, as a plain object.
  async failure(promise) {
    let result;
    try {
      result = await promise;
    } catch (err) {
      const { name, message, code, type, data, retryable, nodeID, stack } = err;
      return { name, message, code, type, data, retryable, nodeID, stack };
    }
    throw new Error(`a failure was expected, but the call returned ${JSON.stringify(result)}`);
  }

  clearSeen(ids) {
    return Promise.all(ids.map((nodeID) => this.call("echo.clear", {}, { nodeID })));
  }

  // The events that each node's `echo` has seen since the last clear: {id: [event...]}.
  async seen(ids) {
    const lists = await Promise.all(ids.map((nodeID) => this.call("echo.seen", {}, { nodeID })));
    return Object.fromEntries(ids.map((id, index) => [id, lists[index]]));
  }

  // Waits until the nodes have seen `count` events in sum, and returns them.
  async seenInSum(ids, count) {
    let seen = {};
    const sum = () => Object.values(seen).reduce((total, list) => total + list.length, 0);
    try {
      await until(`${count} events in sum`, async () => {
        seen = await this.seen(ids);
        return sum() >= count;
      });
    } catch (err) {
      throw new Error(`${err.message}; seen: ${JSON.stringify(seen)}`);
    }
    return seen;
  }
}

module.exports = { Context };
