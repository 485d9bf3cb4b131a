"use strict";

// Nodes of either kind that stop, die and come back under the same name, with calls going on.

const assert = require("node:assert/strict");

const { nodeSeenBy, serves } = require("../lib/mesh");
const { until } = require("../lib/wait");

// A dead peer is known at once over TCP; over NATS a Moleculer node waits for heartbeats: up to
// two timeout periods.
const HEARTBEAT = { HEARTBEAT_INTERVAL: "1", HEARTBEAT_TIMEOUT: "2" };
const DEAD_MS = 20000;
const BACK_MS = 20000;

// Calls one after the other until told to stop, and tells which failed.
function traffic(call) {
  const failures = [];
  let served = 0;
  let running = true;
  const loop = (async () => {
    while (running) {
      try {
        await call();
        served++;
      } catch (err) {
        failures.push(`${err.name}: ${err.message}`);
      }
      // Lets the loop breathe, so that the traffic is steady and not a flood.
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  return {
    served: () => served,
    async stop() {
      running = false;
      await loop;
      return { failures, served };
    }
  };
}

module.exports = {
  name: "lifecycle",

  async open(t) {
    await t.openMesh("lifecycle", { ids: ["ctl", "w1", "w2", "j1"], env: HEARTBEAT });
    t.mesh.start("w1", "weft");
    t.mesh.start("w2", "weft", { PREFER_LOCAL: "false" });
    t.mesh.start("j1", "js");
    t.ctl = await t.mesh.broker("ctl");
    await t.mesh.converge(t.ctl);
  },

  parts: [
    { name: "weft stops", run: weftStops },
    { name: "weft dies", run: weftDies },
    { name: "moleculer stops", run: moleculerStops },
    { name: "moleculer dies", run: moleculerDies }
  ]
};

// Over TCP a caller in Moleculer learns of the end by the closed socket, so the call that is on its
// way at that moment fails: one at a time here, so one at most.
const lossAllowed = (t) => (t.isTcp ? 1 : 0);

// In any run of a scenario the instance id before a restart is remembered to see the new one.
const instanceOf = async (t, id) => (await t.call("$node.list")).find((row) => row.id === id).instanceID;

async function weftStops(t) {
  const { mesh, ctl } = t;
  const w1 = mesh.nodes.get("w1");
  const before = await instanceOf(t, "w1");
  const calls = traffic(() => t.call("echo.whoami", {}, { timeout: 10000 }));
  await until("traffic", () => calls.served() > 20);
  ctl.lost.delete("w1");

  await t.check("SIGTERM ends a weft node with exit code 0", async () => {
    assert.deepEqual(await w1.terminate(), { code: 0, signal: null });
  });
  await t.check("Moleculer hears of it, as of an expected leaving", async () => {
    await until("$node.disconnected", () => ctl.lost.has("w1"), { ms: DEAD_MS });
    if (!t.isTcp) assert.equal(ctl.lost.get("w1").unexpected, false);
    assert.equal(serves(ctl, "echo", "w1"), false);
  });
  await othersSeeItGone(t, "w1");
  await t.check("no call of Moleculer got lost while the weft node stopped", async () => {
    const seen = calls.served();
    await until("traffic to go on", () => calls.served() > seen + 20);
    const { failures } = await calls.stop();
    assert.ok(failures.length <= lossAllowed(t), failures.join("\n"));
  });
  await t.check("a call to the stopped node by name is a 404", async () => {
    const failure = await t.failure(t.call("echo.whoami", {}, { nodeID: "w1" }));
    assert.equal(failure.code, 404);
    assert.deepEqual(failure.data, { action: "echo.whoami", nodeID: "w1" });
  });
  await comesBack(t, "w1", before, "after a stop");
}

async function weftDies(t) {
  const { mesh, ctl } = t;
  const w1 = mesh.nodes.get("w1");
  const before = await instanceOf(t, "w1");
  ctl.lost.delete("w1");
  const waiting = t.failure(t.call("echo.sleep", { ms: 30000 }, { nodeID: "w1" }));
  waiting.catch(() => {});
  await t.call("echo.whoami", {}, { nodeID: "w1" }); // The sleep has arrived by now.
  await w1.kill();

  await t.check("a call of Moleculer that waits for a killed weft node is rejected", async () => {
    const failure = await waiting;
    assert.equal(failure.name, "RequestRejectedError");
    assert.equal(failure.code, 503);
    assert.equal(failure.retryable, true);
    assert.deepEqual(failure.data, { action: "echo.sleep", nodeID: "w1" });
  });
  await t.check("Moleculer takes the killed node out", async () => {
    await until("$node.disconnected", () => ctl.lost.has("w1"), { ms: DEAD_MS });
    if (!t.isTcp) assert.equal(ctl.lost.get("w1").unexpected, true);
    assert.equal(serves(ctl, "echo", "w1"), false);
  });
  await othersSeeItGone(t, "w1");
  await comesBack(t, "w1", before, "after its death");
}

async function moleculerStops(t) {
  const { mesh, ctl } = t;
  const j1 = mesh.nodes.get("j1");
  const before = await instanceOf(t, "j1");
  // Calls by w2, which prefers nobody, so a third of them goes to j1.
  const calls = traffic(() => t.via("w2", "echo.whoami", {}, { timeout: 10000 }));
  await until("traffic", () => calls.served() > 20);

  await t.check("SIGTERM ends a Moleculer node with exit code 0", async () => {
    assert.deepEqual(await j1.terminate(), { code: 0, signal: null });
  });
  await othersSeeItGone(t, "j1");
  await t.check("no call of weft got lost while the Moleculer node stopped", async () => {
    const seen = calls.served();
    await until("traffic to go on", () => calls.served() > seen + 20);
    const { failures } = await calls.stop();
    assert.ok(failures.length <= lossAllowed(t), failures.join("\n"));
  });
  await t.check("weft's call to the stopped node by name is a 404", async () => {
    const failure = await t.failure(t.via("w2", "echo.whoami", {}, { nodeID: "j1" }));
    assert.equal(failure.code, 404);
    assert.deepEqual(failure.data, { action: "echo.whoami", nodeID: "j1" });
    assert.equal(failure.nodeID, "w2");
  });
  await comesBack(t, "j1", before, "after a stop");
}

async function moleculerDies(t) {
  const { mesh, ctl } = t;
  const j1 = mesh.nodes.get("j1");
  const before = await instanceOf(t, "j1");
  const waiting = t.failure(t.via("w2", "echo.sleep", { ms: 30000 }, { nodeID: "j1" }));
  waiting.catch(() => {});
  await t.via("w2", "echo.whoami", {}, { nodeID: "j1" });
  const killed = Date.now();
  await j1.kill();

  await t.check("a call of weft that waits for a killed Moleculer node is rejected", async () => {
    const failure = await waiting;
    assert.equal(failure.name, "RequestRejectedError");
    assert.equal(failure.code, 503);
    assert.equal(failure.retryable, true);
    assert.deepEqual(failure.data, { action: "echo.sleep", nodeID: "j1" });
    assert.equal(failure.nodeID, "w2");
  });
  await t.checkWeft("it is rejected at once, not when heartbeats run out", async () => {
    await waiting;
    assert.ok(Date.now() - killed < 1500, `after ${Date.now() - killed} ms`);
  });
  await othersSeeItGone(t, "j1");
  await comesBack(t, "j1", before, "after its death");
}

async function othersSeeItGone(t, id) {
  const others = [...t.mesh.nodes.keys()].filter((other) => other !== id);
  for (const other of others) {
    await t.check(`${other} takes ${id} out`, async () => {
      const gone = async () => (await nodeSeenBy(t.ctl, other, id)).available === false;
      await until(`${other} to list ${id} as unavailable`, gone, { ms: DEAD_MS });
    });
  }
  await until(`Moleculer to lose ${id}`, () => !serves(t.ctl, "echo", id), { ms: DEAD_MS });
}

async function comesBack(t, id, instanceBefore, when) {
  const { mesh, ctl } = t;
  const others = [...mesh.nodes.keys()].filter((other) => other !== id);
  mesh.nodes.get(id).start();

  await t.check(`${id} comes back under its name ${when}, and Moleculer calls it`, async () => {
    await until(`${id} to be callable`, () => serves(ctl, "echo", id), { ms: BACK_MS });
    assert.equal((await t.call("echo.whoami", {}, { nodeID: id })).nodeID, id);
    assert.notEqual(await instanceOf(t, id), instanceBefore);
  });
  for (const other of others) {
    await t.check(`${other} calls ${id} ${when}`, async () => {
      const call = () => t.via(other, "echo.whoami", {}, { nodeID: id, timeout: 1000 });
      const who = await until(`${other} to reach ${id}`, call, { ms: BACK_MS });
      assert.equal(who.nodeID, id);
      assert.equal(who.caller, "echo");
    });
  }
  await t.check(`${id} calls the others ${when}`, async () => {
    for (const other of others) {
      const call = () => t.via(id, "echo.whoami", {}, { nodeID: other, timeout: 1000 });
      assert.equal((await until(`${id} to reach ${other}`, call, { ms: BACK_MS })).nodeID, other);
    }
  });
}
