"use strict";

// The service $node of a weft node, beside that of a Moleculer node.

const assert = require("node:assert/strict");

const { misfits } = require("../lib/shape");

const ECHO_ACTIONS = [
  "burn", "clear", "emit", "fail", "relay", "reply", "seen", "setMeta", "sleep", "value", "whoami"
].map((name) => `echo.${name}`).sort();

const sorted = (list) => [...list].sort();

// The rows of the three asked about, in a fixed order, so that shapes can be laid side by side.
const pick = (rows, key, ids) => ids.map((id) => rows.find((row) => row[key] === id));

module.exports = {
  name: "$node",

  async run(t) {
    const ask = (id, action, params = {}) => t.call(action, params, { nodeID: id });
    const fits = (actual, reference, skip = []) =>
      assert.deepEqual(misfits(actual, reference, { skip }), []);

    await t.check("list: the shape of each row is Moleculer's", async () => {
      const ids = ["w1", "j1", "ctl"];
      const mine = pick(await ask("w1", "$node.list"), "id", ids);
      const theirs = pick(await ask("j1", "$node.list"), "id", ids);
      for (let i = 0; i < ids.length; i++) fits(mine[i], theirs[i], ["metadata"]);
    });

    await t.check("list: exactly one row is local", async () => {
      const rows = await ask("w1", "$node.list");
      assert.deepEqual(rows.filter((row) => row.local).map((row) => row.id), ["w1"]);
    });

    // A Moleculer node cannot send this answer: its rows refer to themselves.
    await t.checkWeft("list: services only when asked for", async () => {
      const without = pick(await ask("w1", "$node.list"), "id", ["j1"])[0];
      assert.equal(without.services, undefined);
      const rows = await ask("w1", "$node.list", { withServices: true });
      const [own, other] = pick(rows, "id", ["w1", "j1"]);
      assert.ok(own.services.some((service) => service.fullName === "echo"), "own");
      assert.ok(other.services.some((service) => service.fullName === "echo"), "other");
    });

    await t.check("list: only available nodes when asked for", async () => {
      const rows = await ask("w1", "$node.list", { onlyAvailable: true });
      assert.deepEqual(sorted(rows.map((row) => row.id)), ["ctl", "j1", "w1", "w2"]);
    });

    await t.check("list: flags given as texts are understood", async () => {
      const rows = await ask("w1", "$node.list", { onlyAvailable: "true" });
      assert.equal(rows.length, 4);
    });

    await t.check("list, asked by weft of Moleculer", async () => {
      const rows = await t.via("w1", "$node.list", {}, { nodeID: "j1" });
      assert.deepEqual(rows.filter((row) => row.local).map((row) => row.id), ["j1"]);
    });

    await t.check("a weft node that names no node answers $node calls itself", async () => {
      const rows = await t.via("w1", "$node.list", {});
      assert.deepEqual(rows.filter((row) => row.local).map((row) => row.id), ["w1"]);
    });

    await t.check("services: a group row for echo with all its nodes", async () => {
      const [mine] = pick(await ask("w1", "$node.services"), "fullName", ["echo"]);
      const [theirs] = pick(await ask("j1", "$node.services"), "fullName", ["echo"]);
      fits(mine, theirs);
      assert.deepEqual(sorted(mine.nodes), ["j1", "w1", "w2"]);
      assert.equal(mine.available, true);
    });

    await t.check("services: actions and events with their definitions", async () => {
      const params = { withActions: true, withEvents: true };
      const [mine] = pick(await ask("w1", "$node.services", params), "fullName", ["echo"]);
      assert.deepEqual(sorted(Object.keys(mine.actions)), ECHO_ACTIONS);
      assert.equal(mine.actions["echo.reply"].name, "echo.reply");
      assert.equal(mine.actions["echo.reply"].rawName, "reply");
      assert.deepEqual(sorted(Object.keys(mine.events)), ["fixture.*.seen", "fixture.ping"]);
      assert.equal(mine.events["fixture.ping"].name, "fixture.ping");
    });

    await t.check("services: what weft announces about echo is what Moleculer then lists", async () => {
      const params = { withActions: true, withEvents: true, grouping: false };
      const rows = await t.call("$node.services", params);
      const echo = rows.find((row) => row.name === "echo" && row.nodeID === "w1");
      assert.deepEqual(sorted(Object.keys(echo.actions)), ECHO_ACTIONS);
      assert.deepEqual(sorted(Object.keys(echo.events)), ["fixture.*.seen", "fixture.ping"]);
    });

    await t.check("services: one row per node without grouping", async () => {
      const rows = await ask("w1", "$node.services", { grouping: false });
      const echo = rows.filter((row) => row.name === "echo");
      assert.deepEqual(sorted(echo.map((row) => row.nodeID)), ["j1", "w1", "w2"]);
      assert.ok(echo.every((row) => row.available === true));
    });

    await t.check("services: onlyLocal and skipInternal", async () => {
      const local = await ask("w1", "$node.services", { onlyLocal: true });
      const names = local.map((row) => row.name);
      assert.ok(names.includes("echo") && names.includes("$node"), names.join());
      assert.ok(!names.includes("probe"), names.join());
      const plain = await ask("w1", "$node.services", { skipInternal: true });
      assert.ok(!plain.some((row) => row.name.startsWith("$")));
      assert.ok(plain.some((row) => row.name === "probe"));
    });

    await t.check("actions: count, local, availability, definition", async () => {
      const [mine] = pick(await ask("w1", "$node.actions"), "name", ["echo.reply"]);
      const [theirs] = pick(await ask("j1", "$node.actions"), "name", ["echo.reply"]);
      fits(mine, theirs);
      assert.equal(mine.count, 3);
      assert.equal(mine.hasLocal, true);
      assert.equal(mine.available, true);
      assert.equal(mine.action.rawName, "reply");
    });

    await t.check("actions: endpoints when asked for", async () => {
      const [row] = pick(await ask("w1", "$node.actions", { withEndpoints: true }), "name", ["echo.reply"]);
      assert.deepEqual(sorted(row.endpoints.map((endpoint) => endpoint.nodeID)), ["j1", "w1", "w2"]);
      assert.ok(row.endpoints.every((endpoint) => endpoint.state === true && endpoint.available === true));
    });

    await t.check("actions: a remote action's definition, params included", async () => {
      const [row] = pick(await ask("w1", "$node.actions"), "name", ["probe.validated"]);
      assert.equal(row.hasLocal, false);
      assert.deepEqual(row.action.params, { id: "number", name: "string|min:3" });
    });

    await t.check("actions: onlyLocal and skipInternal", async () => {
      const rows = await ask("w1", "$node.actions", { onlyLocal: true, skipInternal: true });
      const names = rows.map((row) => row.name);
      assert.ok(names.includes("echo.reply"), names.join());
      assert.ok(!names.some((name) => name.startsWith("$") || name.startsWith("probe.")), names.join());
    });

    await t.check("events: one row per pattern and group", async () => {
      const [mine] = pick(await ask("w1", "$node.events"), "name", ["fixture.ping"]);
      const [theirs] = pick(await ask("j1", "$node.events"), "name", ["fixture.ping"]);
      fits(mine, theirs);
      assert.equal(mine.group, "echo");
      assert.equal(mine.count, 3);
      assert.equal(mine.hasLocal, true);
    });

    await t.check("events: a remote subscription with a group of its own", async () => {
      const rows = await ask("w1", "$node.events", { withEndpoints: true });
      const row = rows.find((each) => each.name === "probe.audit");
      assert.equal(row.group, "auditors");
      assert.deepEqual(row.endpoints.map((endpoint) => endpoint.nodeID), ["ctl"]);
    });

    await t.check("health: the shape is Moleculer's", async () => {
      // The argument list and the kinds of memory are each runtime's own.
      const skip = ["process.argv", "process.memory", "os.user"];
      const mine = await ask("w1", "$node.health");
      fits(mine, await ask("j1", "$node.health"), skip);
      assert.ok(mine.process.memory.rss > 0, "rss");
      assert.ok(mine.process.pid === t.mesh.nodes.get("w1").child.process.pid, "pid");
      assert.ok(Math.abs(mine.time.now - Date.now()) < 60000, "time");
    });

    await t.check("health, asked by weft of Moleculer", async () => {
      const health = await t.via("w1", "$node.health", {}, { nodeID: "j1" });
      assert.equal(health.client.type, "nodejs");
      assert.equal(health.process.pid, t.mesh.nodes.get("j1").child.process.pid);
    });

    await t.check("options: what the node was started with", async () => {
      const options = await ask("w2", "$node.options");
      assert.equal(options.nodeID, "w2");
      assert.equal(options.namespace, t.mesh.namespace);
      assert.equal(options.registry.preferLocal, false);
      assert.equal(options.retryPolicy.retries, 2);
      assert.equal(options.retryPolicy.enabled, true);
      assert.equal(typeof options.heartbeatInterval, "number");
      assert.equal(typeof options.heartbeatTimeout, "number");
      assert.equal(typeof options.requestTimeout, "number");
    });

    await t.check("options: metadata and the round-robin default", async () => {
      const options = await ask("w1", "$node.options");
      assert.deepEqual(options.metadata, { zone: "west", rack: { row: 7 } });
      assert.equal(String(options.registry.strategy).replace(/[^a-z]/gi, "").toLowerCase(), "roundrobin");
      assert.equal(options.registry.preferLocal, true);
    });

    await t.check("options, asked by weft of Moleculer", async () => {
      const options = await t.via("w1", "$node.options", {}, { nodeID: "j1" });
      assert.equal(options.nodeID, "j1");
      assert.deepEqual(options.metadata, { zone: "east" });
    });

    await t.check("an unknown $node action is an ordinary 404", async () => {
      const failure = await t.failure(t.via("w1", "$node.secrets"));
      assert.equal(failure.name, "ServiceNotFoundError");
      assert.equal(failure.code, 404);
    });
  }
};
