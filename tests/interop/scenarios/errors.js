"use strict";

// Errors of each class, over the wire in both directions, with all that belongs to them.

const assert = require("node:assert/strict");

const CALL = { action: "some.action", nodeID: "n-9" };

// What is thrown, and what a Moleculer caller gets where that differs: some classes are rebuilt
// from their data alone, or force a code and a type.
const THROWN = [
  [{ name: "MoleculerError", message: "odd", code: 501, type: "ODD", data: { a: [1, { b: null }] }, retryable: false }],
  [{ name: "MoleculerError", message: "no extras" }, { code: 500 }],
  [{ name: "MoleculerRetryableError", message: "busy", code: 503, type: "BUSY", data: { wait: 5 }, retryable: true }],
  [{ name: "MoleculerServerError", message: "broken", code: 500, type: "BROKEN", data: "text", retryable: true }],
  [{ name: "MoleculerClientError", message: "bad", code: 400, type: "BAD", data: [1, 2], retryable: false }],
  [{ name: "MoleculerClientError", message: "teapot ☕", code: 418, type: "TEAPOT", data: 7, retryable: false }],
  [{
    name: "ValidationError", message: "Parameters validation error!", code: 422, type: "VALIDATION_ERROR",
    data: [{ type: "number", field: "id", message: "must be a number", actual: "x" }], retryable: false
  }],
  [
    { name: "ServiceNotFoundError", message: "gone", code: 404, type: "SERVICE_NOT_FOUND", data: CALL, retryable: true },
    { message: "Service 'some.action' is not found on 'n-9' node." }
  ],
  [
    { name: "ServiceNotAvailableError", message: "away", code: 404, type: "SERVICE_NOT_AVAILABLE", data: CALL, retryable: true },
    { message: "Service 'some.action' is not available on 'n-9' node." }
  ],
  [
    { name: "RequestTimeoutError", message: "late", code: 504, type: "REQUEST_TIMEOUT", data: CALL, retryable: true },
    { message: "Request is timed out when call 'some.action' action on 'n-9' node." }
  ],
  [
    { name: "RequestSkippedError", message: "skip", code: 514, type: "REQUEST_SKIPPED", data: CALL, retryable: false },
    { message: "Calling 'some.action' is skipped because timeout reached on 'n-9' node." }
  ],
  [
    { name: "RequestRejectedError", message: "no", code: 503, type: "REQUEST_REJECTED", data: CALL, retryable: true },
    { message: "Request is rejected when call 'some.action' action on 'n-9' node." }
  ],
  [
    {
      name: "QueueIsFullError", message: "full", code: 429, type: "QUEUE_FULL",
      data: { ...CALL, size: 100, limit: 100 }, retryable: true
    },
    { message: "Queue is full. Request 'some.action' action on 'n-9' node is rejected." }
  ],
  [
    { name: "MaxCallLevelError", message: "deep", code: 500, type: "MAX_CALL_LEVEL", data: { nodeID: "n-9", level: 4 }, retryable: false },
    { message: "Request level is reached the limit (4) on 'n-9' node." }
  ],
  [
    { name: "ServiceSchemaError", message: "schema", code: 500, type: "SERVICE_SCHEMA_ERROR", data: { s: 1 }, retryable: false }
  ],
  [
    { name: "BrokerOptionsError", message: "option", code: 500, type: "BROKER_OPTIONS_ERROR", data: { o: 1 }, retryable: false }
  ],
  [
    { name: "BrokerDisconnectedError", message: "cut", code: 502, type: "BAD_GATEWAY", data: null, retryable: true }
  ],
  [{ name: "PaymentError", message: "own class", code: 402, type: "NO_MONEY", data: { left: 0 }, retryable: true }],
  [{ name: "SystemError", message: "text code", code: "ERR_SOMETHING", type: "SYS", data: { x: 1 }, retryable: false }],
  [{ name: "Error", message: "bare" }]
];

// Absent, null and (for `retryable`) false are one thing to a caller.
function normal(error) {
  const { name, message } = error;
  return {
    name,
    message,
    code: error.code ?? null,
    type: error.type ?? null,
    data: error.data ?? null,
    retryable: error.retryable ?? false
  };
}

const title = (error) => [error.name, error.code, error.type].filter((part) => part !== undefined).join(" ");

module.exports = {
  name: "errors",

  async run(t) {
    for (const [thrown, rebuilt = {}] of THROWN) {
      const expected = normal({ ...thrown, ...rebuilt });
      await t.check(`${title(thrown)}, thrown by weft, caught in Moleculer`, async () => {
        const failure = await t.failure(t.call("echo.fail", thrown, { nodeID: "w1" }));
        assert.deepEqual(normal(failure), expected);
        assert.equal(failure.nodeID, "w1");
        assert.ok(String(failure.stack).includes(failure.message) || rebuilt.message, "stack");
      });
      await t.check(`${title(thrown)}, thrown by Moleculer, passed on by weft`, async () => {
        const failure = await t.failure(t.via("w1", "echo.fail", thrown, { nodeID: "j1" }));
        assert.deepEqual(normal(failure), expected);
        assert.equal(failure.nodeID, "j1");
      });
    }

    await t.check("a validation failure of Moleculer passes weft with its list", async () => {
      const failure = await t.failure(t.via("w1", "probe.validated", { id: "x", name: "ab" }));
      assert.equal(failure.name, "ValidationError");
      assert.equal(failure.code, 422);
      assert.equal(failure.type, "VALIDATION_ERROR");
      assert.deepEqual(failure.data.map((row) => row.field).sort(), ["id", "name"]);
      assert.equal(failure.data.find((row) => row.field === "id").type, "number");
      assert.equal(failure.retryable, false);
      assert.equal(failure.nodeID, "ctl");
    });

    await t.check("a TypeError of a Moleculer handler passes weft", async () => {
      const failure = await t.failure(t.via("w1", "probe.typeError"));
      assert.equal(failure.name, "TypeError");
      assert.match(failure.message, /undefined/);
      assert.equal(failure.nodeID, "ctl");
    });

    await t.check("a thrown text of a Moleculer handler passes weft as MoleculerError 500", async () => {
      const failure = await t.failure(t.via("w1", "probe.throwText"));
      assert.equal(failure.name, "MoleculerError");
      assert.equal(failure.message, "just a text");
      assert.equal(failure.code, 500);
    });

    await t.check("a class of the user's own passes weft with name, code, type and data", async () => {
      const failure = await t.failure(t.via("w1", "probe.quota"));
      const { name, message, code, type, data } = failure;
      assert.deepEqual({ name, message, code, type, data }, {
        name: "QuotaError", message: "over quota", code: 422, type: "QUOTA", data: { left: 0 }
      });
    });

    await t.check("a system error with a text as its code passes weft", async () => {
      const failure = await t.failure(t.via("w1", "probe.systemError"));
      assert.equal(failure.code, "ERR_INVALID_ARG_TYPE");
      assert.equal(failure.message, "bad argument");
    });

    await t.check("weft calls an action that nobody has: 404 SERVICE_NOT_FOUND", async () => {
      const failure = await t.failure(t.via("w1", "ghost.walk"));
      assert.equal(failure.name, "ServiceNotFoundError");
      assert.equal(failure.code, 404);
      assert.equal(failure.type, "SERVICE_NOT_FOUND");
      assert.equal(failure.data.action, "ghost.walk");
      assert.equal(failure.retryable, true);
      assert.equal(failure.message, "Service 'ghost.walk' is not found.");
      assert.equal(failure.nodeID, "w1");
    });

    await t.check("weft calls a node that does not exist: 404 with action and node", async () => {
      const failure = await t.failure(t.via("w1", "echo.reply", {}, { nodeID: "nobody" }));
      assert.equal(failure.name, "ServiceNotFoundError");
      assert.deepEqual(failure.data, { action: "echo.reply", nodeID: "nobody" });
      assert.equal(failure.nodeID, "w1");
    });

    await t.check("meta set before a failure in weft comes back with the failure", async () => {
      const order = { action: "echo.setMeta", params: { key: "before", value: 1 } };
      const call = t.call("echo.relay", order, { nodeID: "w1", meta: { own: 1 } });
      await call;
      const failing = t.call("echo.relay", { action: "ghost.walk" }, { nodeID: "w1", meta: { own: 2 } });
      await t.failure(failing);
      assert.deepEqual(call.ctx.meta, { own: 1, before: 1 });
      assert.deepEqual(failing.ctx.meta, { own: 2 });
    });

    await t.check("an error's data may be large", async () => {
      const data = { rows: Array.from({ length: 2000 }, (_, n) => ({ n, text: `row ${n}` })) };
      const failure = await t.failure(
        t.via("w1", "echo.fail", { name: "MoleculerError", message: "big", code: 500, data }, { nodeID: "j1" })
      );
      assert.deepEqual(failure.data, data);
    });
  }
};
