"use strict";

// PING and PONG between both kinds.

const assert = require("node:assert/strict");

function assertPong(pong, nodeID) {
  assert.equal(pong.nodeID, nodeID);
  assert.ok(pong.elapsedTime >= 0 && pong.elapsedTime < 5000, `elapsedTime ${pong.elapsedTime}`);
  assert.ok(Math.abs(pong.timeDiff) < 2500, `timeDiff ${pong.timeDiff}`);
  assert.ok(pong.id, "id");
}

module.exports = {
  name: "ping",

  async run(t) {
    await t.check("Moleculer pings weft", async () => {
      assertPong(await t.ctl.ping("w1", 5000), "w1");
    });

    await t.check("Moleculer pings everybody", async () => {
      const pongs = await t.ctl.ping(null, 5000);
      assert.deepEqual(Object.keys(pongs).sort(), ["j1", "w1", "w2"]);
      for (const id of ["j1", "w1", "w2"]) assertPong(pongs[id], id);
    });

    await t.checkIf("w1", "control.ping", "weft pings Moleculer", async () => {
      assertPong(await t.call("control.ping", { nodeID: "j1", timeout: 5000 }, { nodeID: "w1" }), "j1");
    });

    await t.checkIf("w1", "control.ping", "weft pings a node that does not exist: nothing, in time", async () => {
      const pong = await t.call("control.ping", { nodeID: "nobody", timeout: 200 }, { nodeID: "w1", timeout: 5000 });
      assert.equal(pong ?? null, null);
    });
  }
};
