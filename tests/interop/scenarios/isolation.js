"use strict";

// Two meshes with different namespaces on one NATS server know nothing of each other.

const assert = require("node:assert/strict");

const WORKERS = ["w1", "j1"];

module.exports = {
  name: "isolation",
  transporters: ["nats"],

  async open(t) {
    await t.openMesh("isolation", { ids: ["ctl", ...WORKERS] });
    // A second mesh with the same node names: nothing but the namespace tells them apart.
    t.other = await t.addMesh("isolation-other", { ids: ["ctl", ...WORKERS] });
    for (const mesh of [t.mesh, t.other]) {
      mesh.start("w1", "weft");
      mesh.start("j1", "js");
    }
    t.ctl = await t.mesh.broker("ctl");
    t.otherCtl = await t.other.broker("ctl");
    await t.mesh.converge(t.ctl);
    await t.other.converge(t.otherCtl);
  },

  parts: [{ name: "isolation", run }]
};

async function run(t) {
  const instances = async (broker, id) => {
    const rows = await broker.call("echo.relay", { action: "$node.list", params: {} }, { nodeID: id });
    return rows.map((row) => row.instanceID);
  };

  for (const id of WORKERS) {
    await t.check(`${id} lists no node of the other namespace`, async () => {
      const here = await instances(t.ctl, id);
      const there = await instances(t.otherCtl, id);
      assert.equal(here.length, 3);
      assert.equal(there.length, 3);
      assert.deepEqual(here.filter((instance) => there.includes(instance)), []);
    });
  }

  await t.check("same node names in another namespace do not end anybody", () => {
    for (const mesh of [t.mesh, t.other]) mesh.assertAlive(WORKERS);
  });

  await t.check("a broadcast by weft stays in its namespace", async () => {
    for (const broker of [t.ctl, t.otherCtl]) {
      for (const nodeID of WORKERS) await broker.call("echo.clear", {}, { nodeID });
    }
    await t.call("echo.emit", { event: "fixture.ping", payload: "here", broadcast: true }, { nodeID: "w1" });
    await t.seenInSum(WORKERS, 2);
    // The marker takes the same way in the other namespace, later.
    await t.otherCtl.broadcast("fixture.ping", "there");
    for (const nodeID of WORKERS) {
      const seen = await t.otherCtl.call("echo.seen", {}, { nodeID });
      assert.deepEqual(seen.map((row) => row.params), ["there"], nodeID);
    }
  });

  await t.check("a service of one namespace is not found from the other", async () => {
    t.ctl.createService({ name: "private", actions: { hi: () => 1 } });
    await t.ctl.waitForServices("private", 10000, 50);
    const order = { action: "private.hi" };
    const failure = await t.failure(t.otherCtl.call("echo.relay", order, { nodeID: "w1" }));
    assert.equal(failure.type, "SERVICE_NOT_FOUND");
  });
}
