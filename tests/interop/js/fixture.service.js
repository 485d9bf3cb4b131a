"use strict";

// The service `echo` in Moleculer: the twin of the fixture that weft-runner loads. Both answer
// every call alike, so a scenario may put either in any place.

function record(ctx) {
  this.seen.push({
    event: ctx.eventName,
    params: ctx.params,
    nodeID: this.broker.nodeID,
    sender: ctx.nodeID,
    groups: ctx.eventGroups,
    type: ctx.eventType
  });
}

module.exports = {
  name: "echo",

  created() {
    this.seen = [];
  },

  actions: {
    reply: (ctx) => ({ params: ctx.params, meta: ctx.meta, headers: ctx.headers }),

    value: (ctx) => ctx.params.value,

    fail(ctx) {
      const { name, message, code, type, data, retryable } = ctx.params;
      throw Object.assign(new Error(message), { name, code, type, data, retryable });
    },

    async sleep(ctx) {
      await new Promise((resolve) => setTimeout(resolve, ctx.params.ms));
      return this.broker.nodeID;
    },

    whoami(ctx) {
      const { level, caller, requestID, parentID } = ctx;
      return { nodeID: this.broker.nodeID, level, caller, requestID, parentID };
    },

    relay(ctx) {
      const { action, params, options } = ctx.params;
      return ctx.call(action, params, options);
    },

    setMeta(ctx) {
      ctx.meta[ctx.params.key] = ctx.params.value;
    },

    async emit(ctx) {
      const { event, payload, groups, broadcast } = ctx.params;
      await (broadcast ? ctx.broadcast(event, payload, { groups }) : ctx.emit(event, payload, { groups }));
    },

    burn(ctx) {
      const end = Date.now() + ctx.params.ms;
      while (Date.now() < end);
      return this.broker.nodeID;
    },

    seen() {
      return this.seen;
    },

    clear() {
      this.seen = [];
    }
  },

  events: {
    "fixture.ping": record,
    "fixture.*.seen": record
  }
};
