"use strict";

// A service that comes, goes and comes back while the mesh runs, on either side.

const assert = require("node:assert/strict");

const { serves } = require("../lib/mesh");
const { until } = require("../lib/wait");

module.exports = {
  name: "late service",

  async run(t) {
    const schema = (reply) => ({ name: "late", version: 2, actions: { hi: () => reply } });
    const callable = (id) => () => t.via(id, "v2.late.hi", {}, { timeout: 1000 });
    // Gone is when a call by `id` fails as not found or not available, both 404.
    const gone = (id, action) => async () => {
      const failure = await t.failure(t.via(id, action, {}, { timeout: 1000 }));
      return failure.code === 404 && failure;
    };

    await t.check("a service created in Moleculer becomes callable from weft", async () => {
      t.ctl.createService(schema("first"));
      assert.equal(await until("v2.late on w1", callable("w1")), "first");
      assert.equal(await until("v2.late on w2", callable("w2")), "first");
    });

    await t.check("weft lists it with its version", async () => {
      const rows = await t.via("w1", "$node.services", {});
      const row = rows.find((each) => each.fullName === "v2.late");
      assert.equal(row.name, "late");
      assert.equal(row.version, 2);
      assert.deepEqual(row.nodes, ["ctl"]);
    });

    await t.check("a service destroyed in Moleculer is gone for weft", async () => {
      await t.ctl.destroyService({ name: "late", version: 2 });
      const failure = await until("v2.late gone from w1", gone("w1", "v2.late.hi"));
      assert.match(failure.type, /^SERVICE_NOT_(FOUND|AVAILABLE)$/);
    });

    await t.check("created again, it is callable from weft again", async () => {
      t.ctl.createService(schema("second"));
      assert.equal(await until("v2.late on w1", callable("w1")), "second");
    });

    await t.checkIf("w1", "control.create", "a service created in weft becomes callable from Moleculer", async () => {
      await t.call("control.create", { name: "extra", reply: "from weft" }, { nodeID: "w1" });
      await until("extra in Moleculer", () => serves(t.ctl, "extra", "w1"));
      assert.equal(await t.call("extra.hi"), "from weft");
      assert.equal(await until("extra on j1", () => t.via("j1", "extra.hi", {}, { timeout: 1000 })), "from weft");
    });

    await t.checkIf("w1", "control.destroy", "a service destroyed in weft is gone for Moleculer", async () => {
      await t.call("control.destroy", { name: "extra" }, { nodeID: "w1" });
      await until("extra gone from Moleculer", () => !serves(t.ctl, "extra", "w1"));
      const failure = await t.failure(t.call("extra.hi"));
      assert.equal(failure.code, 404);
      await until("extra gone from j1", gone("j1", "extra.hi"));
    });

    await t.checkIf("w1", "control.create", "created in weft again, it is callable from Moleculer again", async () => {
      await t.call("control.create", { name: "extra", reply: "again" }, { nodeID: "w1" });
      await until("extra in Moleculer", () => serves(t.ctl, "extra", "w1"));
      assert.equal(await t.call("extra.hi"), "again");
    });
  }
};
