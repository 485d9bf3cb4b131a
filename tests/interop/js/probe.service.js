"use strict";

// The service `probe`, on the driver's own broker only: it tells what a real Moleculer node makes
// of what it is sent, and fails in the ways of real services.

module.exports = (moleculer) => {
  class QuotaError extends moleculer.Errors.MoleculerError {
    constructor() {
      super("over quota", 422, "QUOTA", { left: 0 });
    }
  }

  const describe = (ctx) => ({
    sender: ctx.nodeID,
    params: ctx.params,
    meta: ctx.meta,
    headers: ctx.headers,
    level: ctx.level,
    caller: ctx.caller,
    requestID: ctx.requestID,
    parentID: ctx.parentID,
    timeout: ctx.options.timeout
  });

  function record(ctx) {
    this.notes.push({
      ...describe(ctx),
      event: ctx.eventName,
      groups: ctx.eventGroups,
      type: ctx.eventType
    });
  }

  return {
    name: "probe",

    created() {
      this.notes = [];
      this.runs = new Map();
    },

    actions: {
      context: describe,

      nothing: () => undefined,

      // Fails `failures` times for each `key`, then returns how often it ran.
      flaky(ctx) {
        const { key, failures, retryable } = ctx.params;
        const runs = (this.runs.get(key) || 0) + 1;
        this.runs.set(key, runs);
        if (runs > failures) return runs;
        const Kind = retryable ? moleculer.Errors.MoleculerRetryableError : moleculer.Errors.MoleculerError;
        throw new Kind(`run ${runs}`, 503, "FLAKY", { runs });
      },

      runs(ctx) {
        return this.runs.get(ctx.params.key) || 0;
      },

      validated: { params: { id: "number", name: "string|min:3" }, handler: () => true },

      typeError: () => undefined.missing,

      throwText() {
        throw "just a text"; // eslint-disable-line no-throw-literal
      },

      quota() {
        throw new QuotaError();
      },

      systemError() {
        throw Object.assign(new Error("bad argument"), { code: "ERR_INVALID_ARG_TYPE" });
      }
    },

    events: {
      "probe.note": record,
      "probe.audit": { group: "auditors", handler: record },
      "probe.tree.**": { group: "tree", handler: record }
    }
  };
};
