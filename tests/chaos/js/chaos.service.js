"use strict";

// The service `chaos` in Moleculer: the twin of tests/chaos/worker.cpp, without its bad manners.

async function work(ctx) {
  await new Promise((resolve) => setTimeout(resolve, ctx.params.ms));
  return this.broker.nodeID;
}

module.exports = {
  name: "chaos",

  actions: { work, safe: work },

  events: {
    "$node.connected"(ctx) {
      this.broker.broadcast("seen.found", { node: ctx.params.node.id });
    },
    "$node.disconnected"(ctx) {
      this.broker.broadcast("seen.lost", { node: ctx.params.node.id });
    }
  }
};
