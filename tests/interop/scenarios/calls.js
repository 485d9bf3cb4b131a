"use strict";

// Single calls in both directions: params, meta, headers, options.

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");

// What a caller passes as params, and what the other side gets.
const PARAMS = [
  ["a map", { a: 1, b: { c: [true, null, "x"] } }],
  ["nothing, which becomes {}", undefined, {}],
  ["null, which stays null", null],
  ["a text", "plain text"],
  ["a number", 42],
  ["false", false],
  ["a list", [1, "two", { three: 3 }]],
  ["an empty list", []]
];

module.exports = {
  name: "calls",

  async run(t) {
    for (const [title, params, arrives = params] of PARAMS) {
      await t.check(`Moleculer calls weft with ${title}`, async () => {
        assert.deepEqual((await t.call("echo.reply", params, { nodeID: "w1" })).params, arrives);
      });
      await t.check(`weft calls Moleculer with ${title}`, async () => {
        const answer = await t.via("w1", "echo.reply", params, { nodeID: "j1" });
        assert.deepEqual(answer.params, arrives);
      });
    }

    await t.check("meta goes down to weft", async () => {
      const meta = { user: { id: 7, roles: ["a"] }, flag: false };
      assert.deepEqual((await t.call("echo.reply", {}, { nodeID: "w1", meta })).meta, meta);
    });

    await t.check("meta set in weft comes back up", async () => {
      const call = t.call("echo.setMeta", { key: "added", value: [1, 2] }, { nodeID: "w1", meta: { own: 1 } });
      await call;
      assert.deepEqual(call.ctx.meta, { own: 1, added: [1, 2] });
    });

    await t.check("meta set in Moleculer comes back up through weft", async () => {
      const call = t.via("w1", "echo.setMeta", { key: "deep", value: "x" }, { nodeID: "j1" }, { meta: { own: 1 } });
      await call;
      assert.deepEqual(call.ctx.meta, { own: 1, deep: "x" });
    });

    await t.check("meta is null-safe: a null in it survives", async () => {
      assert.deepEqual((await t.call("echo.reply", {}, { nodeID: "w1", meta: { gone: null } })).meta, { gone: null });
    });

    await t.check("meta given in weft's call options reaches Moleculer, over the inherited one", async () => {
      const answer = await t.via(
        "w1", "echo.reply", {}, { nodeID: "j1", meta: { b: 20, c: 30 } }, { meta: { a: 1, b: 2 } }
      );
      assert.deepEqual(answer.meta, { a: 1, b: 20, c: 30 });
    });

    await t.check("headers reach weft", async () => {
      const headers = { "x-one": "1", n: 2 };
      assert.deepEqual((await t.call("echo.reply", {}, { nodeID: "w1", headers })).headers, headers);
    });

    await t.check("headers are for one call: a nested call does not inherit them", async () => {
      const answer = await t.via("w1", "echo.reply", {}, { nodeID: "j1" }, { headers: { "x-one": "1" } });
      assert.deepEqual(answer.headers, {});
    });

    await t.check("weft serves a root call with level 1, no caller and no parent", async () => {
      const requestID = randomUUID();
      const who = await t.call("echo.whoami", {}, { nodeID: "w1", requestID });
      assert.equal(who.nodeID, "w1");
      assert.equal(who.level, 1);
      assert.equal(who.caller ?? null, null);
      assert.equal(who.parentID ?? null, null);
      assert.equal(who.requestID, requestID);
    });

    await t.check("without a given request id weft sees one all the same", async () => {
      const call = t.call("echo.whoami", {}, { nodeID: "w1" });
      const who = await call;
      assert.equal(who.requestID, call.ctx.requestID);
      assert.ok(who.requestID.length > 0);
    });

    await t.check("Moleculer sees weft's nested call: sender, level, caller, parent", async () => {
      const requestID = randomUUID();
      const seen = await t.via("w1", "probe.context", { k: 1 }, undefined, { requestID });
      assert.equal(seen.sender, "w1");
      assert.equal(seen.level, 2);
      assert.equal(seen.caller, "echo");
      assert.equal(seen.requestID, requestID);
      assert.ok(typeof seen.parentID === "string" && seen.parentID.length > 0);
      assert.deepEqual(seen.params, { k: 1 });
    });

    await t.check("a call to weft that returns nothing resolves with nothing", async () => {
      const result = await t.call("echo.setMeta", { key: "k", value: 1 }, { nodeID: "w1" });
      assert.ok(result === undefined || result === null, `returned ${JSON.stringify(result)}`);
    });

    await t.check("an action of Moleculer that returns nothing, called by weft", async () => {
      const result = await t.via("w1", "probe.nothing");
      assert.ok(result === undefined || result === null, `returned ${JSON.stringify(result)}`);
    });

    await t.check("a hundred calls at once to weft are answered, each with its own", async () => {
      const numbers = [...Array(100).keys()];
      const answers = await Promise.all(numbers.map((n) => t.call("echo.value", { value: n }, { nodeID: "w1" })));
      assert.deepEqual(answers, numbers);
    });

    await t.check("a hundred calls at once from weft to Moleculer, each with its own", async () => {
      const numbers = [...Array(100).keys()];
      const answers = await Promise.all(
        numbers.map((n) => t.via("w1", "echo.value", { value: n }, { nodeID: "j1" }))
      );
      assert.deepEqual(answers, numbers);
    });

    await t.check("a slow call to weft does not hold up a quick one", async () => {
      const slow = t.call("echo.sleep", { ms: 1500 }, { nodeID: "w1" });
      let done = false;
      slow.then(() => (done = true));
      await t.call("echo.whoami", {}, { nodeID: "w1" });
      assert.equal(done, false);
      assert.equal(await slow, "w1");
    });

    await t.check("a fallback given in weft's options stands in for a failure in Moleculer", async () => {
      const options = { nodeID: "j1", fallbackResponse: { instead: true } };
      const result = await t.via("w1", "echo.fail", { name: "MoleculerError", message: "m", code: 500 }, options);
      assert.deepEqual(result, { instead: true });
    });

    await t.check("weft retries a retryable failure of Moleculer as often as its policy says", async () => {
      const key = randomUUID();
      assert.equal(await t.via("w2", "probe.flaky", { key, failures: 2, retryable: true }), 3);
    });

    await t.check("weft gives up after the retries given in the call", async () => {
      const key = randomUUID();
      const failure = await t.failure(
        t.via("w2", "probe.flaky", { key, failures: 9, retryable: true }, { retries: 1 })
      );
      assert.equal(failure.type, "FLAKY");
      assert.equal(await t.call("probe.runs", { key }), 2);
    });

    await t.check("weft does not retry what is not retryable, and never as the serving side", async () => {
      const key = randomUUID();
      await t.failure(t.via("w2", "probe.flaky", { key, failures: 9, retryable: false }));
      assert.equal(await t.call("probe.runs", { key }), 1);
      const again = randomUUID();
      await t.failure(t.via("w2", "probe.flaky", { key: again, failures: 9, retryable: true }, { retries: 0 }));
      assert.equal(await t.call("probe.runs", { key: again }), 1);
    });
  }
};
