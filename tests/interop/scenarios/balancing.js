"use strict";

// After Moleculer's own multi-node scenario "balancing": callers of both kinds spread calls over
// workers of both kinds, and go on with those that are left.

const assert = require("node:assert/strict");

const { serves, nodeSeenBy } = require("../lib/mesh");
const { until } = require("../lib/wait");

const WORKERS = ["w1", "w2", "j1"];

async function tally(count, call) {
  const sums = {};
  for (let n = 0; n < count; n++) {
    const { nodeID } = await call();
    sums[nodeID] = (sums[nodeID] || 0) + 1;
  }
  return sums;
}

module.exports = {
  name: "balancing",

  async open(t) {
    await t.openMesh("balancing", { ids: ["ctl", ...WORKERS] });
    t.mesh.start("w1", "weft", { PREFER_LOCAL: "false" });
    t.mesh.start("w2", "weft");
    t.mesh.start("j1", "js", { PREFER_LOCAL: "false" });
    t.ctl = await t.mesh.broker("ctl");
    await t.mesh.converge(t.ctl);
  },

  parts: [{ name: "balancing", run }]
};

async function run(t) {
  await t.check("Moleculer spreads calls evenly over workers of both kinds", async () => {
    assert.deepEqual(await tally(15, () => t.call("echo.whoami")), { w1: 5, w2: 5, j1: 5 });
  });

  await t.check("weft spreads calls evenly over workers of both kinds", async () => {
    assert.deepEqual(await tally(15, () => t.via("w1", "echo.whoami")), { w1: 5, w2: 5, j1: 5 });
  });

  await t.check("a Moleculer worker spreads its own calls evenly too", async () => {
    assert.deepEqual(await tally(15, () => t.via("j1", "echo.whoami")), { w1: 5, w2: 5, j1: 5 });
  });

  await t.check("a weft worker that prefers itself keeps its calls", async () => {
    assert.deepEqual(await tally(6, () => t.via("w2", "echo.whoami")), { w2: 6 });
  });

  await t.check("each action has its own rotation", async () => {
    const sums = { whoami: {}, sleep: {} };
    for (let n = 0; n < 9; n++) {
      const { nodeID } = await t.via("w1", "echo.whoami");
      const slept = await t.via("w1", "echo.sleep", { ms: 0 });
      sums.whoami[nodeID] = (sums.whoami[nodeID] || 0) + 1;
      sums.sleep[slept] = (sums.sleep[slept] || 0) + 1;
    }
    assert.deepEqual(sums, { whoami: { w1: 3, w2: 3, j1: 3 }, sleep: { w1: 3, w2: 3, j1: 3 } });
  });

  await t.check("Moleculer spreads balanced events evenly", async () => {
    await t.clearSeen(WORKERS);
    for (let n = 0; n < 6; n++) await t.ctl.emit("fixture.ping", n);
    const seen = await t.seenInSum(WORKERS, 6);
    assert.deepEqual(WORKERS.map((id) => seen[id].length), [2, 2, 2]);
  });

  await t.check("weft spreads balanced events evenly", async () => {
    await t.clearSeen(WORKERS);
    for (let n = 0; n < 6; n++) await t.call("echo.emit", { event: "fixture.ping", payload: n }, { nodeID: "w1" });
    const seen = await t.seenInSum(WORKERS, 6);
    assert.deepEqual(WORKERS.map((id) => seen[id].length), [2, 2, 2]);
  });

  await t.check("with one weft worker gone, callers of both kinds share the rest", async () => {
    await t.mesh.nodes.get("w2").terminate();
    await until("ctl to lose w2", () => !serves(t.ctl, "echo", "w2"));
    await until("w1 to lose w2", async () => !(await nodeSeenBy(t.ctl, "w1", "w2")).available);
    assert.deepEqual(await tally(8, () => t.call("echo.whoami")), { w1: 4, j1: 4 });
    assert.deepEqual(await tally(8, () => t.via("w1", "echo.whoami")), { w1: 4, j1: 4 });
  });

  await t.check("with the Moleculer worker gone too, the last one serves all", async () => {
    await t.mesh.nodes.get("j1").terminate();
    await until("ctl to lose j1", () => !serves(t.ctl, "echo", "j1"));
    await until("w1 to lose j1", async () => !(await nodeSeenBy(t.ctl, "w1", "j1")).available);
    assert.deepEqual(await tally(4, () => t.call("echo.whoami")), { w1: 4 });
    assert.deepEqual(await tally(4, () => t.via("w1", "echo.whoami")), { w1: 4 });
  });

  await t.check("with nobody left the action is known but not available", async () => {
    await t.mesh.nodes.get("w1").terminate();
    await until("ctl to lose w1", () => !serves(t.ctl, "echo", "w1"));
    const failure = await t.failure(t.call("echo.whoami"));
    assert.equal(failure.name, "ServiceNotAvailableError");
    assert.equal(failure.code, 404);
  });

  await t.check("a worker that starts now gets the calls", async () => {
    t.mesh.nodes.get("w2").start();
    await until("w2 to serve", () => serves(t.ctl, "echo", "w2"));
    assert.deepEqual(await tally(4, () => t.call("echo.whoami")), { w2: 4 });
  });
}
