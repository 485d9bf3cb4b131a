"use strict";

// What a scenario may ask of a running node beyond `echo`. A node of either kind may offer this
// service; a check that needs it on a node without it is reported as skipped.

module.exports = {
  name: "control",

  actions: {
    // Adds a service {name, dependencies} with the action `hi`, which returns `reply`.
    create(ctx) {
      const { name, reply, dependencies } = ctx.params;
      this.broker.createService({ name, dependencies, actions: { hi: () => reply } });
    },

    destroy(ctx) {
      return this.broker.destroyService(ctx.params.name);
    },

    // {nodeID, elapsedTime, timeDiff, id}, or null when there is no answer within `timeout` ms.
    ping: (ctx) => ctx.broker.ping(ctx.params.nodeID, ctx.params.timeout),

    // {services, statuses}, or the error WAITFOR_SERVICES.
    wait: (ctx) => ctx.broker.waitForServices(ctx.params.services, ctx.params.timeout, 50)
  }
};
