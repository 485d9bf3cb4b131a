"use strict";

// After Moleculer's own multi-node scenario "dependencies": services wait for services of other
// nodes, whichever kind those are and in whatever order they start.

const assert = require("node:assert/strict");

const { serves } = require("../lib/mesh");
const { until } = require("../lib/wait");

module.exports = {
  name: "dependencies",

  async open(t) {
    await t.openMesh("dependencies", { ids: ["ctl", "w1"] });
    t.ctl = await t.mesh.broker("ctl");
  },

  parts: [{ name: "dependencies", run }]
};

async function run(t) {
  let started = false;
  t.ctl.createService({
    name: "needy",
    dependencies: ["echo"],
    actions: { hi: () => "at last" },
    started() {
      started = true;
    }
  });

  await t.check("a Moleculer service that needs weft's echo has not started before there is one", async () => {
    const failure = await t.failure(t.ctl.waitForServices(["echo"], 300, 50));
    assert.equal(failure.type, "WAITFOR_SERVICES");
    assert.equal(failure.code, 500);
    assert.equal(started, false);
    assert.equal((await t.failure(t.call("needy.hi"))).code, 404);
  });

  t.mesh.start("w1", "weft");

  await t.check("it starts when the weft node appears", async () => {
    await until("needy to start", () => started);
    assert.equal(serves(t.ctl, "echo", "w1"), true);
    assert.equal(await t.call("needy.hi"), "at last");
  });

  await t.check("and weft can call it", async () => {
    assert.equal(await until("needy on w1", () => t.via("w1", "needy.hi", {}, { timeout: 1000 })), "at last");
  });

  await t.checkIf("w1", "control.wait", "waiting in weft for a service that never comes ends in its time", async () => {
    const failure = await t.failure(
      t.call("control.wait", { services: ["provider"], timeout: 300 }, { nodeID: "w1", timeout: 20000 })
    );
    assert.equal(failure.code, 500);
    assert.equal(failure.type, "WAITFOR_SERVICES");
    assert.deepEqual(failure.data, { services: ["provider"], statuses: [{ name: "provider", available: false }] });
  });

  await t.checkIf("w1", "control.create", "a weft service that needs a Moleculer service waits for it", async () => {
    await t.call("control.create", { name: "waiter", reply: "served", dependencies: ["provider"] }, { nodeID: "w1" });
    // Nothing of it may be seen while its dependency is missing.
    await t.failure(t.call("control.wait", { services: ["provider"], timeout: 300 }, { nodeID: "w1", timeout: 20000 }));
    assert.equal(serves(t.ctl, "waiter", "w1"), false);
    t.ctl.createService({ name: "provider", actions: { hi: () => 1 } });
    await until("waiter to appear", () => serves(t.ctl, "waiter", "w1"));
    assert.equal(await t.call("waiter.hi"), "served");
  });

  await t.checkIf("w1", "control.wait", "waiting in weft for what is there ends at once", async () => {
    const result = await t.call("control.wait", { services: ["provider", "echo"], timeout: 10000 }, { nodeID: "w1" });
    assert.deepEqual([...result.services].sort(), ["echo", "provider"]);
    assert.ok(result.statuses.every((status) => status.available === true));
  });
}
