"use strict";

// The Shard strategy: callers of both kinds send the same key to the same node, the one that the
// ring says.

const assert = require("node:assert/strict");

const { serves, nodeSeenBy } = require("../lib/mesh");
const { shardOf } = require("../lib/shard_ring");
const { until } = require("../lib/wait");

const WORKERS = ["w1", "w2", "j1"];
const KEYS = ["user-1", "user-2", "alice", "bob", "ünï", "", "x".repeat(200), 0, 42, -7, 1.5, 1e21, true, false, "42"];

const BY_NAME = { STRATEGY: "Shard", SHARD_KEY: "name", PREFER_LOCAL: "false" };
const BY_TENANT = { STRATEGY: "Shard", SHARD_KEY: "#tenant.id", PREFER_LOCAL: "false" };

module.exports = {
  name: "shard",

  async open(t) {
    await t.openMesh("shard", { ids: ["ctl", "ctl2", ...WORKERS] });
    t.mesh.start("w1", "weft", BY_NAME);
    t.mesh.start("w2", "weft", BY_TENANT);
    t.mesh.start("j1", "js", BY_NAME);
    t.ctl = await t.mesh.broker("ctl", { env: BY_NAME });
    t.byTenant = await t.mesh.broker("ctl2", { env: BY_TENANT, probe: false });
    await t.mesh.converge(t.ctl);
    await until("ctl2 to see all", () => WORKERS.every((id) => serves(t.byTenant, "echo", id)));
  },

  parts: [{ name: "shard", run }]
};

async function run(t) {
  // Where each kind of caller sends `key`.
  const CALLERS = [
    ["Moleculer, key in params", (key) => t.call("echo.whoami", { name: key })],
    ["weft, key in params", (key) => t.via("w1", "echo.whoami", { name: key })],
    ["a Moleculer worker, key in params", (key) => t.via("j1", "echo.whoami", { name: key })],
    ["Moleculer, key in meta", (key) => t.byTenant.call("echo.whoami", {}, { meta: { tenant: { id: key } } })],
    ["weft, key in meta", (key) => t.via("w2", "echo.whoami", {}, undefined, { meta: { tenant: { id: key } } })]
  ];

  const agree = async (workers) => {
    for (const [title, call] of CALLERS) {
      await t.check(`${title}: ${KEYS.length} keys land where the ring of ${workers.length} says`, async () => {
        const landed = {};
        const expected = {};
        for (const key of KEYS) {
          const label = JSON.stringify(key);
          landed[label] = (await call(key)).nodeID;
          expected[label] = shardOf(key, workers);
        }
        assert.deepEqual(landed, expected);
      });
    }
  };

  await t.check("the yardstick itself: known keys on a known ring", () => {
    const nodes = ["worker-2", "worker-3", "worker-1"];
    const known = { u1: "node-3", u2: "node-2", u3: "node-1", u4: "node-3", u5: "node-1", 42: "node-1", alice: "node-3", bob: "node-1", "ünï": "node-3" };
    assert.equal(shardOf("user-1", nodes), "worker-2");
    for (const [key, node] of Object.entries(known)) assert.equal(shardOf(key, ["node-1", "node-2", "node-3"]), node, key);
    for (const [key, node] of Object.entries({ u1: "node-2", u2: "node-2", u3: "node-1", alice: "node-2" })) {
      assert.equal(shardOf(key, ["node-2", "node-1"]), node, key);
    }
  });

  await agree(WORKERS);

  await t.check("the keys above reach every worker", () => {
    assert.deepEqual([...new Set(KEYS.map((key) => shardOf(key, WORKERS)))].sort(), [...WORKERS].sort());
  });

  await t.check("without a key weft still finds some worker", async () => {
    assert.ok(WORKERS.includes((await t.via("w1", "echo.whoami", {})).nodeID));
  });

  await t.check("a balanced event from Moleculer lands where a call with its key would", async () => {
    await t.clearSeen(WORKERS);
    for (const name of ["user-1", "user-2", "bob"]) await t.ctl.emit("fixture.ping", { name });
    const seen = await t.seenInSum(WORKERS, 3);
    for (const id of WORKERS) for (const { params } of seen[id]) assert.equal(shardOf(params.name, WORKERS), id);
  });

  await t.check("a balanced event from weft lands where a call with its key would", async () => {
    await t.clearSeen(WORKERS);
    for (const name of ["user-1", "user-2", "bob"]) {
      await t.call("echo.emit", { event: "fixture.ping", payload: { name } }, { nodeID: "w1" });
    }
    const seen = await t.seenInSum(WORKERS, 3);
    for (const id of WORKERS) for (const { params } of seen[id]) assert.equal(shardOf(params.name, WORKERS), id);
  });

  await t.mesh.nodes.get("j1").terminate();
  const left = ["w1", "w2"];
  await until("ctl to lose j1", () => !serves(t.ctl, "echo", "j1"));
  await until("ctl2 to lose j1", () => !serves(t.byTenant, "echo", "j1"));
  for (const id of left) {
    await until(`${id} to lose j1`, async () => !(await nodeSeenBy(t.ctl, id, "j1")).available);
  }
  CALLERS.splice(2, 1); // j1 was the caller of that row.
  await agree(left);
}
