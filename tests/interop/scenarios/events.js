"use strict";

// Events over mixed nodes: balanced, broadcast, by group, by pattern.

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");

const { until } = require("../lib/wait");

const WORKERS = ["w1", "w2", "j1"];

const counts = (seen) => Object.fromEntries(Object.entries(seen).map(([id, list]) => [id, list.length]));
const names = (list) => list.map((row) => row.event);

module.exports = {
  name: "events",

  async run(t) {
    const { probe } = t.ctl;

    // Emits by `id` through its own context.
    const emitBy = (id, order, options) => t.call("echo.emit", order, { nodeID: id, ...options });

    // Waits for the driver's own event handlers to have run `count` times.
    const notes = async (count) => {
      await until(`${count} notes`, () => probe.notes.length >= count);
      return probe.notes;
    };

    const fresh = async () => {
      probe.notes = [];
      await t.clearSeen(WORKERS);
    };

    await t.check("emit by Moleculer goes round all three nodes in turn", async () => {
      await fresh();
      for (let n = 0; n < 9; n++) await t.ctl.emit("fixture.ping", { n });
      assert.deepEqual(counts(await t.seenInSum(WORKERS, 9)), { w1: 3, w2: 3, j1: 3 });
    });

    await t.check("emit by weft goes round all three nodes in turn", async () => {
      await fresh();
      for (let n = 0; n < 9; n++) await emitBy("w2", { event: "fixture.ping", payload: { n } });
      assert.deepEqual(counts(await t.seenInSum(WORKERS, 9)), { w1: 3, w2: 3, j1: 3 });
    });

    await t.check("emit by a weft node that prefers itself stays there", async () => {
      await fresh();
      for (let n = 0; n < 3; n++) await emitBy("w1", { event: "fixture.ping", payload: { n } });
      // A broadcast comes after them on every link, so nothing can still be on its way.
      await emitBy("w1", { event: "fixture.end.seen", broadcast: true });
      const seen = await t.seenInSum(WORKERS, 6);
      assert.deepEqual(counts(seen), { w1: 4, w2: 1, j1: 1 });
    });

    await t.check("weft sees an emitted event as Moleculer describes it", async () => {
      await fresh();
      for (let n = 0; n < 3; n++) await t.ctl.emit("fixture.ping", { n: [1, null] });
      const { w1 } = await t.seenInSum(WORKERS, 3);
      assert.deepEqual(w1, [
        { event: "fixture.ping", params: { n: [1, null] }, nodeID: "w1", sender: "ctl", groups: ["echo"], type: "emit" }
      ]);
    });

    await t.check("Moleculer sees an event emitted by weft as weft describes it", async () => {
      await fresh();
      for (let n = 0; n < 3; n++) await emitBy("w2", { event: "fixture.ping", payload: "text" });
      const { j1 } = await t.seenInSum(WORKERS, 3);
      assert.deepEqual(j1, [
        { event: "fixture.ping", params: "text", nodeID: "j1", sender: "w2", groups: ["echo"], type: "emit" }
      ]);
    });

    await t.check("broadcast by Moleculer reaches each node once", async () => {
      await fresh();
      await t.ctl.broadcast("fixture.ping", { all: true });
      const seen = await t.seenInSum(WORKERS, 3);
      assert.deepEqual(counts(seen), { w1: 1, w2: 1, j1: 1 });
      assert.equal(seen.w1[0].type, "broadcast");
      assert.equal(seen.w1[0].sender, "ctl");
      assert.deepEqual(seen.w1[0].params, { all: true });
    });

    await t.check("broadcast by weft reaches each node once, itself too", async () => {
      await fresh();
      await emitBy("w1", { event: "fixture.ping", payload: 5, broadcast: true });
      const seen = await t.seenInSum(WORKERS, 3);
      assert.deepEqual(counts(seen), { w1: 1, w2: 1, j1: 1 });
      assert.equal(seen.j1[0].type, "broadcast");
      assert.equal(seen.j1[0].sender, "w1");
      assert.equal(seen.w2[0].sender, "w1");
    });

    await t.check("an event without payload arrives with null", async () => {
      await fresh();
      await t.ctl.broadcast("fixture.ping");
      await emitBy("w2", { event: "fixture.ping", broadcast: true });
      const seen = await t.seenInSum(WORKERS, 6);
      for (const id of WORKERS) {
        for (const row of seen[id]) {
          // On the sender itself a missing payload may stay missing; no packet made it null.
          if (row.sender !== id) assert.equal(row.params, null, `${id}: ${JSON.stringify(row)}`);
        }
      }
    });

    await t.check("the pattern fixture.*.seen takes one word in the middle, in weft as in Moleculer", async () => {
      await fresh();
      for (const name of ["a.seen", "two.seen", "a.b.seen", "other", "end.seen"]) {
        await t.ctl.broadcast(`fixture.${name}`, {});
      }
      const seen = await t.seenInSum(WORKERS, 9);
      for (const id of WORKERS) {
        assert.deepEqual(names(seen[id]), ["fixture.a.seen", "fixture.two.seen", "fixture.end.seen"], id);
      }
    });

    await t.check("weft matches remote patterns the same way when it sends", async () => {
      await fresh();
      for (const name of ["a.seen", "a.b.seen", "other", "end.seen"]) {
        await emitBy("w1", { event: `fixture.${name}`, broadcast: true });
      }
      const seen = await t.seenInSum(WORKERS, 6);
      for (const id of WORKERS) assert.deepEqual(names(seen[id]), ["fixture.a.seen", "fixture.end.seen"], id);
    });

    await t.check("a pattern with ** in Moleculer takes any depth from weft", async () => {
      await fresh();
      for (const event of ["probe.tree.a", "probe.tree.a.b.c", "probe.trees", "probe.tree.z"]) {
        await emitBy("w1", { event });
      }
      await notes(3);
      assert.deepEqual(names(probe.notes), ["probe.tree.a", "probe.tree.a.b.c", "probe.tree.z"]);
    });

    await t.check("emit by Moleculer limited to a group reaches that group only", async () => {
      await fresh();
      await t.ctl.emit("fixture.ping", { n: 1 }, { groups: ["strangers"] });
      for (let n = 0; n < 3; n++) await t.ctl.emit("fixture.ping", { n: 2 }, { groups: ["echo", "strangers"] });
      const seen = await t.seenInSum(WORKERS, 3);
      assert.deepEqual(counts(seen), { w1: 1, w2: 1, j1: 1 });
      for (const id of WORKERS) assert.deepEqual(seen[id][0].params, { n: 2 });
    });

    await t.check("emit by weft limited to a group reaches that group only", async () => {
      await fresh();
      await emitBy("w1", { event: "probe.audit", payload: 1, groups: ["probe"] });
      await emitBy("w1", { event: "probe.audit", payload: 2, groups: ["auditors"] });
      const [note, ...more] = await notes(1);
      assert.equal(note.params, 2);
      assert.deepEqual(note.groups, ["auditors"]);
      assert.equal(more.length, 0);
    });

    await t.check("broadcast by Moleculer limited to a group", async () => {
      await fresh();
      await t.ctl.broadcast("fixture.ping", 1, { groups: ["strangers"] });
      await t.ctl.broadcast("fixture.ping", 2, { groups: ["echo"] });
      const seen = await t.seenInSum(WORKERS, 3);
      for (const id of WORKERS) assert.deepEqual(seen[id].map((row) => row.params), [2], id);
      assert.deepEqual(seen.w1[0].groups, ["echo"]);
    });

    await t.check("broadcast by weft limited to a group", async () => {
      await fresh();
      await emitBy("w1", { event: "fixture.ping", payload: 1, groups: ["strangers"], broadcast: true });
      await emitBy("w1", { event: "fixture.ping", payload: 2, groups: ["echo"], broadcast: true });
      const seen = await t.seenInSum(WORKERS, 3);
      for (const id of WORKERS) assert.deepEqual(seen[id].map((row) => row.params), [2], id);
    });

    await t.check("a group of its own in Moleculer is one delivery from weft", async () => {
      await fresh();
      await emitBy("w1", { event: "probe.audit", payload: { sum: 3 } });
      const [note] = await notes(1);
      assert.equal(note.event, "probe.audit");
      assert.deepEqual(note.groups, ["auditors"]);
    });

    await t.check("an event from weft carries its chain: meta, request id, level, caller, parent", async () => {
      await fresh();
      const requestID = randomUUID();
      await emitBy("w1", { event: "probe.note", payload: { x: 1 } }, { meta: { m: 1 }, requestID });
      const [note] = await notes(1);
      assert.equal(note.sender, "w1");
      assert.equal(note.type, "emit");
      assert.deepEqual(note.params, { x: 1 });
      assert.deepEqual(note.meta, { m: 1 });
      assert.equal(note.requestID, requestID);
      assert.equal(note.level, 2);
      assert.equal(note.caller, "echo");
      assert.ok(note.parentID, "parentID");
      assert.deepEqual(note.headers, {});
    });

    await t.check("a broadcast from weft carries the same", async () => {
      await fresh();
      const requestID = randomUUID();
      const order = { event: "probe.note", payload: [1], broadcast: true };
      await emitBy("w2", order, { meta: { m: { deep: null } }, requestID });
      const [note] = await notes(1);
      assert.equal(note.type, "broadcast");
      assert.deepEqual(note.params, [1]);
      assert.deepEqual(note.meta, { m: { deep: null } });
      assert.equal(note.requestID, requestID);
      assert.equal(note.level, 2);
    });

    await t.check("an event that nobody listens to is a quiet success, by weft too", async () => {
      await emitBy("w1", { event: "nobody.cares", payload: 1 });
      await emitBy("w1", { event: "nobody.cares", payload: 1, broadcast: true });
    });

    await t.check("events from one node arrive in the order of their sending", async () => {
      await fresh();
      const numbers = [...Array(50).keys()];
      for (const n of numbers) await t.ctl.broadcast("fixture.ping", n);
      const seen = await t.seenInSum(WORKERS, 150);
      assert.deepEqual(seen.w1.map((row) => row.params), numbers);
    });
  }
};
