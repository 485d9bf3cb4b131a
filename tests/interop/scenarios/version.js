"use strict";

// A peer of protocol "4" in a mesh of protocol "5": it is not heard and gets no answer.
//
// "No answer" is shown without waiting: a packet of version 5 follows on the same way, and when
// its answer is there, the answer to the earlier one would be too.

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");

const { nodeSeenBy } = require("../lib/mesh");
const { RawPeer } = require("../lib/raw_peer");
const { until } = require("../lib/wait");

const SERVICES = [{
  name: "oldie",
  fullName: "oldie",
  settings: {},
  actions: { "oldie.four": { name: "oldie.four", rawName: "four" }, "oldie.five": { name: "oldie.five", rawName: "five" } },
  events: {}
}];

module.exports = {
  name: "version",

  async run(t) {
    const peer = await RawPeer.open(t.mesh, "old", SERVICES);
    try {
      // Over TCP the gossip is the same in all versions, so there is nothing to be dropped there.
      if (!t.isTcp) {
        await t.check("INFO of version 4 is dropped by weft, the same in version 5 is taken", async () => {
          await peer.announce({ ver: "4" });
          await peer.response(await peer.request("w1", "echo.whoami", {}));
          assert.equal(await nodeSeenBy(t.ctl, "w1", "old"), undefined);
          await peer.announce();
          await until("w1 to list old", () => nodeSeenBy(t.ctl, "w1", "old"));
        });
      }
      await peer.announce();
      peer.serve("oldie.four", () => ({ ver: "4", data: "heard" }));
      peer.serve("oldie.five", () => ({ data: "heard" }));
      await until("w1 to know old", () => t.via("w1", "oldie.five", {}, { timeout: 1000 }));
      await checks(t, peer);
    } finally {
      await peer.close();
    }
  }
};

async function checks(t, peer) {
  const unanswered = async (fields) => {
    const dropped = await peer.request("w1", "echo.value", { value: "dropped" }, fields);
    const served = await peer.request("w1", "echo.value", { value: "served" });
    assert.equal((await peer.response(served)).data, "served");
    const answer = peer.packets.find((packet) => packet.type === "RES" && packet.fields.id === dropped);
    assert.equal(answer, undefined);
  };

  await t.check("REQ of version 4 gets no answer from weft", () => unanswered({ ver: "4" }));

  await t.check("REQ with the number 5 as its version gets no answer from weft", () => unanswered({ ver: 5 }));

  await t.check("REQ without a version gets no answer from weft", () => unanswered({ ver: undefined }));

  await t.check("RES of version 4 is not heard: weft's call times out", async () => {
    const failure = await t.failure(t.via("w1", "oldie.four", {}, { timeout: 300 }));
    assert.equal(failure.name, "RequestTimeoutError");
    assert.equal(failure.data.action, "oldie.four");
    assert.equal(await t.via("w1", "oldie.five", {}, { timeout: 10000 }), "heard");
  });

  await t.check("EVENT of version 4 is dropped by weft", async () => {
    await t.clearSeen(["w1"]);
    await peer.send("EVENT", "w1", { ver: "4", event: "fixture.ping", data: 4 });
    await peer.send("EVENT", "w1", { event: "fixture.ping", data: 5 });
    const { w1 } = await t.seenInSum(["w1"], 1);
    assert.deepEqual(w1.map((row) => row.params), [5]);
  });

  await t.check("PING of version 4 is dropped by weft", async () => {
    const [four, five] = [randomUUID(), randomUUID()];
    await peer.send("PING", "w1", { ver: "4", time: Date.now(), id: four });
    await peer.send("PING", "w1", { time: Date.now(), id: five });
    await peer.next("PONG", (pong) => pong.id === five);
    assert.ok(!peer.packets.some((packet) => packet.type === "PONG" && packet.fields.id === four));
  });
}
