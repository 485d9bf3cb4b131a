"use strict";

// NATS balances (`disableBalancer`): queue groups of both kinds side by side.

const assert = require("node:assert/strict");

const { until } = require("../lib/wait");

const WORKERS = ["w1", "w2", "j1"];

module.exports = {
  name: "balanced mode",
  transporters: ["nats"],

  async open(t) {
    await t.openMesh("balanced", { ids: ["ctl", ...WORKERS], env: { DISABLE_BALANCER: "true" } });
    t.mesh.start("w1", "weft");
    t.mesh.start("w2", "weft");
    t.mesh.start("j1", "js");
    t.ctl = await t.mesh.broker("ctl");
    await t.mesh.converge(t.ctl);
  },

  parts: [{ name: "balanced mode", run }]
};

async function run(t) {
  // The server picks a member at random: with 80 calls it never skips one of three (3e-14).
  const spread = async (call) => {
    const answers = await Promise.all([...Array(80)].map(call));
    assert.equal(answers.length, 80);
    assert.deepEqual([...new Set(answers.map((who) => who.nodeID))].sort(), [...WORKERS].sort());
  };

  await t.check("calls by Moleculer are shared by workers of both kinds", () => spread(() => t.call("echo.whoami")));

  await t.check("calls by weft are shared by workers of both kinds, itself among them", () =>
    spread(() => t.via("w1", "echo.whoami")));

  for (const id of WORKERS) {
    await t.check(`a call with a node goes there: ${id}`, async () => {
      assert.equal((await t.call("echo.whoami", {}, { nodeID: id })).nodeID, id);
      assert.equal((await t.via("w1", "echo.whoami", {}, { nodeID: id })).nodeID, id);
    });
  }

  await t.check("params, meta and answers are whole", async () => {
    const call = t.via("w1", "echo.reply", { a: [1] }, undefined, { meta: { m: 1 } });
    assert.deepEqual(await call, { params: { a: [1] }, meta: { m: 1 }, headers: {} });
  });

  await t.check("errors come back", async () => {
    const failure = await t.failure(t.via("w1", "echo.fail", { name: "MoleculerError", message: "m", code: 507, type: "T" }));
    assert.equal(failure.code, 507);
    assert.ok(WORKERS.includes(failure.nodeID));
  });

  await t.check("emit by Moleculer is one delivery each", async () => {
    await t.clearSeen(WORKERS);
    for (let n = 0; n < 30; n++) await t.ctl.emit("fixture.ping", n);
    const seen = await t.seenInSum(WORKERS, 30);
    const numbers = WORKERS.flatMap((id) => seen[id].map((row) => row.params)).sort((a, b) => a - b);
    assert.deepEqual(numbers, [...Array(30).keys()]);
    assert.ok(WORKERS.every((id) => seen[id].every((row) => row.type === "emit")));
  });

  await t.check("emit by weft is one delivery each", async () => {
    await t.clearSeen(WORKERS);
    for (let n = 0; n < 30; n++) await t.call("echo.emit", { event: "fixture.ping", payload: n }, { nodeID: "w1" });
    const seen = await t.seenInSum(WORKERS, 30);
    const numbers = WORKERS.flatMap((id) => seen[id].map((row) => row.params)).sort((a, b) => a - b);
    assert.deepEqual(numbers, [...Array(30).keys()]);
  });

  await t.check("emit reaches a subscription with a wildcard", async () => {
    await t.clearSeen(WORKERS);
    await t.call("echo.emit", { event: "fixture.middle.seen", payload: 1 }, { nodeID: "w1" });
    await t.ctl.emit("fixture.other.seen", 2);
    const seen = await t.seenInSum(WORKERS, 2);
    assert.deepEqual(WORKERS.flatMap((id) => seen[id].map((row) => row.params)).sort(), [1, 2]);
  });

  await t.check("broadcast by Moleculer reaches every worker once", async () => {
    await t.clearSeen(WORKERS);
    await t.ctl.broadcast("fixture.ping", 1);
    const seen = await t.seenInSum(WORKERS, 3);
    assert.deepEqual(WORKERS.map((id) => seen[id].length), [1, 1, 1]);
  });

  await t.check("broadcast by weft reaches every worker once, itself too", async () => {
    await t.clearSeen(WORKERS);
    await t.call("echo.emit", { event: "fixture.ping", payload: 1, broadcast: true }, { nodeID: "w1" });
    const seen = await t.seenInSum(WORKERS, 3);
    assert.deepEqual(WORKERS.map((id) => seen[id].length), [1, 1, 1]);
  });

  await t.check("a group of the driver's own gets its event from weft", async () => {
    t.ctl.probe.notes = [];
    await t.call("echo.emit", { event: "probe.audit", payload: 9, groups: ["auditors"] }, { nodeID: "w1" });
    await until("the note", () => t.ctl.probe.notes.length > 0);
    assert.deepEqual(t.ctl.probe.notes.map((note) => note.params), [9]);
  });

  await t.check("after a weft worker has stopped, the others share the calls", async () => {
    await t.mesh.nodes.get("w2").terminate();
    const answers = await Promise.all([...Array(60)].map(() => t.call("echo.whoami", {}, { timeout: 20000 })));
    assert.deepEqual([...new Set(answers.map((who) => who.nodeID))].sort(), ["j1", "w1"]);
  });
}
