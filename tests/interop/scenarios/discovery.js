"use strict";

// Who is seen by whom, and as what.

const assert = require("node:assert/strict");

const { nodeSeenBy, servicesSeenBy } = require("../lib/mesh");

const EVERYBODY = ["ctl", "j1", "w1", "w2"];

module.exports = {
  name: "discovery",

  async run(t) {
    await t.check("Moleculer lists both weft nodes as available", async () => {
      const rows = await t.call("$node.list");
      const available = rows.filter((row) => row.available).map((row) => row.id).sort();
      assert.deepEqual(available, EVERYBODY);
    });

    for (const id of ["w1", "w2", "j1"]) {
      await t.check(`${id} lists all four nodes as available`, async () => {
        const rows = await t.via(id, "$node.list", {});
        const available = rows.filter((row) => row.available).map((row) => row.id).sort();
        assert.deepEqual(available, EVERYBODY);
      });
    }

    await t.check("metadata of a weft node reaches Moleculer", async () => {
      const row = (await t.call("$node.list")).find((each) => each.id === "w1");
      assert.deepEqual(row.metadata, { zone: "west", rack: { row: 7 } });
    });

    await t.check("metadata of a Moleculer node reaches weft", async () => {
      assert.deepEqual((await nodeSeenBy(t.ctl, "w1", "j1")).metadata, { zone: "east" });
    });

    await t.check("a weft node tells what it is: client, host name, addresses, instance", async () => {
      const row = (await t.call("$node.list")).find((each) => each.id === "w1");
      assert.equal(typeof row.client.type, "string");
      assert.equal(typeof row.client.version, "string");
      assert.ok(row.hostname.length > 0, "host name");
      assert.ok(Array.isArray(row.ipList) && row.ipList.length > 0, "addresses");
      assert.match(row.instanceID, /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
      assert.ok(Number.isInteger(row.seq) && row.seq >= 1, "seq");
    });

    await t.check("a Moleculer node, as weft lists it, is what it says it is", async () => {
      const row = await nodeSeenBy(t.ctl, "w1", "j1");
      const own = (await t.call("$node.list", {}, { nodeID: "j1" })).find((each) => each.id === "j1");
      assert.equal(row.client.type, "nodejs");
      assert.equal(row.client.version, "0.15.2");
      assert.equal(row.instanceID, own.instanceID);
      assert.equal(row.local, false);
      assert.equal(own.local, true);
    });

    await t.check("weft knows the driver's services, versions and all", async () => {
      const rows = await servicesSeenBy(t.ctl, "w1");
      const probe = rows.find((row) => row.name === "probe");
      assert.equal(probe.nodeID, "ctl");
      assert.equal(probe.fullName, "probe");
      assert.equal(probe.available, true);
    });

    await t.check("waitForServices in Moleculer resolves for a service of weft", async () => {
      const { statuses } = await t.ctl.waitForServices(["echo"], 10000, 50);
      assert.deepEqual(statuses, [{ name: "echo", available: true }]);
    });
  }
};
