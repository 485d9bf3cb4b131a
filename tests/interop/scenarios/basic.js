"use strict";

// After Moleculer's own multi-node scenario "basic": a few calls and events between a handful of
// nodes, without a thought for which of them is which kind.

const assert = require("node:assert/strict");

const { until } = require("../lib/wait");

const WORKERS = ["w1", "w2", "j1"];

module.exports = {
  name: "basic",

  async run(t) {
    await t.check("a call without a node is served by some worker, and says by which", async () => {
      const who = await t.call("echo.whoami");
      assert.ok(WORKERS.includes(who.nodeID), who.nodeID);
    });

    await t.check("a call with params and meta brings its own answer back", async () => {
      const answer = await t.call("echo.reply", { a: "Hey", b: 3 }, { meta: { c: "x" } });
      assert.deepEqual(answer.params, { a: "Hey", b: 3 });
      assert.deepEqual(answer.meta, { c: "x" });
    });

    for (const id of WORKERS) {
      await t.check(`each worker can be called by name: ${id}`, async () => {
        assert.equal((await t.call("echo.whoami", {}, { nodeID: id })).nodeID, id);
      });
      await t.check(`each worker can call back into the driver: ${id}`, async () => {
        assert.equal((await t.via(id, "probe.context")).sender, id);
      });
    }

    await t.check("the error of an unknown action is the caller's own", async () => {
      const failure = await t.failure(t.call("echo.nothing"));
      assert.equal(failure.name, "ServiceNotFoundError");
      assert.deepEqual(failure.data, { action: "echo.nothing" });
    });

    await t.check("several calls in one go", async () => {
      const results = await t.ctl.mcall([
        { action: "echo.value", params: { value: "one" }, options: { nodeID: "w1" } },
        { action: "echo.value", params: { value: 2 }, options: { nodeID: "j1" } },
        { action: "echo.value", params: { value: [3] }, options: { nodeID: "w2" } }
      ]);
      assert.deepEqual(results, ["one", 2, [3]]);
    });

    await t.check("every worker emits, and the driver hears each of them", async () => {
      t.ctl.probe.notes = [];
      for (const id of WORKERS) {
        await t.call("echo.emit", { event: "probe.note", payload: id }, { nodeID: id });
      }
      await until("three notes", () => t.ctl.probe.notes.length >= 3);
      assert.deepEqual(t.ctl.probe.notes.map((note) => note.params).sort(), [...WORKERS].sort());
      for (const note of t.ctl.probe.notes) assert.equal(note.sender, note.params);
    });

    await t.check("every worker broadcasts, and every worker hears each of them", async () => {
      await t.clearSeen(WORKERS);
      for (const id of WORKERS) {
        await t.call("echo.emit", { event: "fixture.ping", payload: id, broadcast: true }, { nodeID: id });
      }
      const seen = await t.seenInSum(WORKERS, 9);
      for (const id of WORKERS) {
        assert.deepEqual(seen[id].map((row) => row.params).sort(), [...WORKERS].sort(), id);
      }
    });
  }
};
