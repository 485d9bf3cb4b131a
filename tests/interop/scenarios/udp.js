"use strict";

// Nodes that find each other by UDP multicast on loopback, with no address given to anybody, and
// keep to their namespace.

const assert = require("node:assert/strict");

const { serves } = require("../lib/mesh");
const { freePort } = require("../lib/ports");
const { until } = require("../lib/wait");

module.exports = {
  name: "udp",
  transporters: ["tcp"],

  async open(t) {
    const env = {
      UDP_DISCOVERY: "true",
      UDP_PORT: String(await freePort()),
      UDP_BIND_ADDRESS: "127.0.0.1",
      TCP_URLS: "",
      TCP_PORT: "0"
    };
    await t.openMesh("udp", { ids: ["ctl", "w1", "j1"], env });
    t.other = await t.addMesh("udp-other", { ids: ["stranger"], env });
    t.mesh.start("w1", "weft");
    t.mesh.start("j1", "js");
    t.other.start("stranger", "weft");
    t.ctl = await t.mesh.broker("ctl");
    t.strange = await t.other.broker("ctl2");
    await t.mesh.converge(t.ctl);
    await t.other.converge(t.strange);
  },

  parts: [{ name: "udp", run }]
};

async function run(t) {
  await t.check("Moleculer found weft by UDP and calls it", async () => {
    assert.equal((await t.call("echo.whoami", {}, { nodeID: "w1" })).nodeID, "w1");
  });

  await t.check("weft found Moleculer by UDP and calls it", async () => {
    assert.equal((await t.via("w1", "echo.whoami", {}, { nodeID: "j1" })).nodeID, "j1");
  });

  await t.check("weft lists exactly the nodes of its namespace", async () => {
    const rows = await t.via("w1", "$node.list", {});
    assert.deepEqual(rows.map((row) => row.id).sort(), ["ctl", "j1", "w1"]);
  });

  await t.check("a weft node of another namespace on the same UDP port stays apart", async () => {
    const order = { action: "$node.list", params: {} };
    const rows = await t.strange.call("echo.relay", order, { nodeID: "stranger" });
    assert.deepEqual(rows.map((row) => row.id).sort(), ["ctl2", "stranger"]);
    assert.equal(serves(t.ctl, "echo", "stranger"), false);
  });

  await t.check("a weft node that comes later is found too", async () => {
    t.mesh.ids.push("w9");
    t.mesh.start("w9", "weft");
    await until("ctl to see w9", () => serves(t.ctl, "echo", "w9"), { ms: 30000 });
    const call = () => t.via("w1", "echo.whoami", {}, { nodeID: "w9", timeout: 1000 });
    assert.equal((await until("w1 to see w9", call, { ms: 30000 })).nodeID, "w9");
  });
}
