"use strict";

// Chains of calls through both kinds of nodes: what travels along, and the remaining time.

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");

// The params for `echo.relay` on ids[0] that lead through all ids to `action` on the last.
function route(ids, action, params) {
  let step = { action, params, options: { nodeID: ids[ids.length - 1] } };
  for (let i = ids.length - 2; i >= 1; i--) {
    step = { action: "echo.relay", params: step, options: { nodeID: ids[i] } };
  }
  return step;
}

module.exports = {
  name: "chain",

  async run(t) {
    const along = (ids, action, params, options) =>
      t.call("echo.relay", route(ids, action, params), { nodeID: ids[0], ...options });

    const CHAINS = [
      ["Moleculer, weft, Moleculer, weft", ["w1", "j1", "w2"]],
      ["Moleculer, Moleculer, weft, weft", ["j1", "w1", "w2"]],
      ["Moleculer, weft, weft, Moleculer", ["w1", "w2", "j1"]]
    ];
    for (const [title, ids] of CHAINS) {
      const last = ids[ids.length - 1];
      await t.check(`${title}: the last one knows level, caller, parent and request id`, async () => {
        const requestID = randomUUID();
        const who = await along(ids, "echo.whoami", {}, { requestID });
        assert.equal(who.nodeID, last);
        assert.equal(who.level, 3);
        assert.equal(who.caller, "echo");
        assert.equal(who.requestID, requestID);
        assert.ok(who.parentID && who.parentID !== requestID, "parentID");
      });

      await t.check(`${title}: meta goes all the way down`, async () => {
        const answer = await along(ids, "echo.reply", { p: 1 }, { meta: { tenant: "acme" }, headers: { h: 1 } });
        assert.deepEqual(answer, { params: { p: 1 }, meta: { tenant: "acme" }, headers: {} });
      });

      await t.check(`${title}: meta comes all the way up`, async () => {
        const call = along(ids, "echo.setMeta", { key: "from", value: last }, { meta: { tenant: "acme" } });
        await call;
        assert.deepEqual(call.ctx.meta, { tenant: "acme", from: last });
      });

      await t.check(`${title}: an error keeps the node where it was born`, async () => {
        const failure = await t.failure(
          along(ids, "echo.fail", { name: "MoleculerClientError", message: "no", code: 418, type: "TEAPOT", data: { d: 1 } })
        );
        assert.equal(failure.name, "MoleculerClientError");
        assert.equal(failure.code, 418);
        assert.equal(failure.type, "TEAPOT");
        assert.deepEqual(failure.data, { d: 1 });
        assert.equal(failure.nodeID, last);
      });
    }

    await t.check("weft passes the remaining time on, not the full one", async () => {
      const seen = await t.via("w1", "probe.context", {}, undefined, { timeout: 5000 });
      assert.ok(seen.timeout > 0 && seen.timeout <= 5000, `timeout ${seen.timeout}`);
    });

    await t.check("the remaining time is passed on over two hops of weft", async () => {
      const order = { action: "echo.relay", params: { action: "probe.context" }, options: { nodeID: "w2" } };
      const seen = await t.call("echo.relay", order, { nodeID: "w1", timeout: 5000 });
      assert.ok(seen.timeout > 0 && seen.timeout <= 5000, `timeout ${seen.timeout}`);
      assert.equal(seen.level, 3);
    });

    await t.check("without a timeout none appears along the way", async () => {
      const seen = await t.via("w1", "probe.context");
      assert.equal(seen.timeout || 0, 0);
    });

    await t.check("a nested timeout in weft's options shortens the remaining time", async () => {
      const seen = await t.via("w1", "probe.context", {}, { timeout: 700 }, { timeout: 5000 });
      assert.ok(seen.timeout > 0 && seen.timeout <= 700, `timeout ${seen.timeout}`);
    });

    await t.check("a nested timeout cannot lengthen the remaining time", async () => {
      const seen = await t.via("w1", "probe.context", {}, { timeout: 60000 }, { timeout: 5000 });
      assert.ok(seen.timeout > 0 && seen.timeout <= 5000, `timeout ${seen.timeout}`);
    });

    await t.check("weft's call to a Moleculer action that takes too long ends in its timeout", async () => {
      const start = Date.now();
      const failure = await t.failure(t.via("w1", "echo.sleep", { ms: 4000 }, { nodeID: "j1", timeout: 300 }));
      assert.equal(failure.name, "RequestTimeoutError");
      assert.equal(failure.code, 504);
      assert.equal(failure.type, "REQUEST_TIMEOUT");
      assert.equal(failure.retryable, true);
      assert.equal(failure.data.action, "echo.sleep");
      const took = Date.now() - start;
      assert.ok(took >= 290 && took < 3900, `took ${took} ms`);
    });

    await t.check("Moleculer's call to a weft action that takes too long ends in its timeout", async () => {
      const failure = await t.failure(t.call("echo.sleep", { ms: 4000 }, { nodeID: "w1", timeout: 300 }));
      assert.equal(failure.name, "RequestTimeoutError");
      assert.equal(failure.data.action, "echo.sleep");
    });

    await t.check("weft still serves after calls that timed out", async () => {
      assert.equal((await t.call("echo.whoami", {}, { nodeID: "w1" })).nodeID, "w1");
    });
  }
};
