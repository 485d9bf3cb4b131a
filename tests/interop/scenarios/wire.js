"use strict";

// What a weft node puts on the wire, field by field, and what it makes of odd bytes: seen by a
// peer that speaks the protocol by hand.

const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");

const { serves } = require("../lib/mesh");
const { RawPeer, encodeFrame } = require("../lib/raw_peer");
const { until } = require("../lib/wait");

const SERVICES = [{
  name: "raw",
  fullName: "raw",
  settings: {},
  metadata: {},
  actions: { "raw.act": { name: "raw.act", rawName: "act" }, "raw.bare": { name: "raw.bare", rawName: "bare" } },
  events: { "raw.event": { name: "raw.event" } }
}];

// Field → the types it may have, with `null` for null; `?` in front allows absence.
const REQ_FIELDS = {
  ver: "string", sender: "string", id: "string", action: "string", params: "?any", meta: "object",
  headers: "object", timeout: "number", level: "number", tracing: "boolean null",
  parentID: "string null", requestID: "string null", caller: "string null", stream: "boolean"
};
const RES_FIELDS = {
  ver: "string", sender: "string", id: "string", meta: "object", headers: "object null",
  success: "boolean", data: "?any"
};
const EVENT_FIELDS = {
  ver: "string", sender: "string", id: "string", event: "string", data: "any", groups: "?array",
  broadcast: "boolean", meta: "object", headers: "object", level: "number", tracing: "boolean null",
  parentID: "string null", requestID: "string null", caller: "string null"
};
const INFO_FIELDS = {
  services: "array", ipList: "array", hostname: "string", client: "object", config: "object",
  instanceID: "string", metadata: "object", seq: "number"
};

const typeOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

function assertFields(packet, table) {
  for (const [field, types] of Object.entries(table)) {
    const optional = types.startsWith("?");
    if (!(field in packet)) {
      assert.ok(optional, `${field} is missing`);
      continue;
    }
    const allowed = types.replace("?", "").split(" ");
    const is = typeOf(packet[field]);
    assert.ok(allowed.includes("any") || allowed.includes(is), `${field} is ${is}, not ${types}`);
  }
}

module.exports = {
  name: "wire",

  async run(t) {
    const peer = await RawPeer.open(t.mesh, "raw", SERVICES);
    try {
      await peer.announce();
      peer.serve("raw.act", (request) => ({ data: { got: request.params } }));
      peer.serve("raw.bare", () => ({ meta: undefined, headers: undefined, data: undefined }));
      await until("w1 to know raw", () => t.via("w1", "raw.act", {}, { timeout: 1000 }));
      await until("ctl to know raw", () => serves(t.ctl, "raw", "raw"));
      await checks(t, peer);
    } finally {
      await peer.close();
    }
  }
};

async function checks(t, peer) {
  await t.check("a REQ from weft has all fields, rightly typed", async () => {
    const tag = randomUUID();
    const answer = await t.via("w1", "raw.act", { tag }, undefined, { meta: { m: 1 }, timeout: 4000 });
    assert.deepEqual(answer, { got: { tag } });
    const { fields } = await peer.next("REQ", (request) => request.params.tag === tag);
    assertFields(fields, REQ_FIELDS);
    assert.equal(fields.ver, "5");
    assert.equal(fields.sender, "w1");
    assert.equal(fields.level, 2);
    assert.equal(fields.caller, "echo");
    assert.equal(fields.stream, false);
    assert.deepEqual(fields.meta, { m: 1 });
    assert.ok(fields.timeout > 0 && fields.timeout <= 4000, `timeout ${fields.timeout}`);
  });

  await t.check("a RES from weft has all fields, and none of a stream", async () => {
    const id = await peer.request("w1", "echo.reply", { a: 1 }, { meta: { m: 1 } });
    const response = await peer.response(id);
    assertFields(response, RES_FIELDS);
    assert.equal(response.ver, "5");
    assert.equal(response.sender, "w1");
    assert.equal(response.success, true);
    assert.deepEqual(response.meta, { m: 1 });
    assert.deepEqual(response.data.params, { a: 1 });
    assert.ok(!("stream" in response) && !("seq" in response), "stream fields");
  });

  await t.check("a failed RES from weft carries the whole error", async () => {
    const error = { name: "MoleculerClientError", message: "no", code: 418, type: "T", data: { d: [1] } };
    const response = await peer.response(await peer.request("w1", "echo.fail", error));
    assertFields(response, { ...RES_FIELDS, error: "object" });
    assert.equal(response.success, false);
    for (const [key, value] of Object.entries(error)) assert.deepEqual(response.error[key], value, key);
    assert.equal(response.error.nodeID, "w1");
  });

  await t.check("weft answers an unknown action with a failed RES, 404", async () => {
    const response = await peer.response(await peer.request("w1", "ghost.walk", {}));
    assert.equal(response.success, false);
    assert.equal(response.error.name, "ServiceNotFoundError");
    assert.equal(response.error.code, 404);
    assert.equal(response.error.data.action, "ghost.walk");
  });

  await t.check("null as a result is there as null", async () => {
    const response = await peer.response(await peer.request("w1", "echo.value", { value: null }));
    assert.ok("data" in response, "data");
    assert.equal(response.data, null);
  });

  await t.check("weft ends a request by itself when the time given in it is over", async () => {
    const response = await peer.response(await peer.request("w1", "echo.sleep", { ms: 4000 }, { timeout: 150 }));
    assert.equal(response.success, false);
    assert.equal(response.error.name, "RequestTimeoutError");
    assert.equal(response.error.code, 504);
    assert.equal(response.error.data.action, "echo.sleep");
  });

  await t.check("a REQ with the barest fields is served", async () => {
    const id = randomUUID();
    await peer.send("REQ", "w1", { id, action: "echo.whoami" });
    const response = await peer.response(id);
    assert.equal(response.success, true);
    assert.equal(response.data.nodeID, "w1");
  });

  await t.check("unknown fields in a REQ do no harm", async () => {
    const id = await peer.request("w1", "echo.value", { value: 1 }, { paramsType: 3, extra: { deep: [1] } });
    assert.equal((await peer.response(id)).data, 1);
  });

  await t.check("a RES with the barest fields is taken by weft", async () => {
    const result = await t.via("w1", "raw.bare", {}, { timeout: 10000 });
    assert.ok(result === undefined || result === null);
  });

  await t.check("an EVENT from weft has all fields, rightly typed", async () => {
    await t.call("echo.emit", { event: "raw.event", payload: { x: 1 } }, { nodeID: "w1", meta: { m: 1 } });
    const { fields } = await peer.next("EVENT", (event) => event.sender === "w1");
    assertFields(fields, EVENT_FIELDS);
    assert.equal(fields.event, "raw.event");
    assert.equal(fields.broadcast, false);
    assert.deepEqual(fields.groups, ["raw"]);
    assert.deepEqual(fields.data, { x: 1 });
    assert.deepEqual(fields.meta, { m: 1 });
  });

  await t.check("an EVENT with the barest fields is taken by weft", async () => {
    await t.clearSeen(["w1"]);
    await peer.send("EVENT", "w1", { event: "fixture.ping" });
    const { w1 } = await t.seenInSum(["w1"], 1);
    assert.equal(w1[0].event, "fixture.ping");
    assert.equal(w1[0].sender, "raw");
    assert.equal(w1[0].type, "emit");
  });

  await t.check("weft answers a PING with the same id and time, and its own clock", async () => {
    const time = Date.now() - 5;
    const id = randomUUID();
    await peer.send("PING", "w1", { time, id });
    const { fields } = await peer.next("PONG", (pong) => pong.id === id);
    assert.equal(fields.time, time);
    assert.equal(fields.sender, "w1");
    assert.ok(Number.isInteger(fields.arrived) && Math.abs(fields.arrived - Date.now()) < 5000, "arrived");
  });

  await t.check("the INFO of a weft node has all fields, rightly typed", async () => {
    const info = await infoOf(t, peer, "w1");
    assertFields(info, INFO_FIELDS);
    const echo = info.services.find((service) => service.name === "echo");
    assert.equal(echo.fullName, "echo");
    assert.equal(echo.actions["echo.reply"].name, "echo.reply");
    assert.equal(echo.actions["echo.reply"].rawName, "reply");
    assert.equal(echo.events["fixture.*.seen"].name, "fixture.*.seen");
    assert.ok(!("version" in echo), "an unversioned service has no version");
  });

  await t.check("bytes that are no packet are dropped, and the next packet is served", async () => {
    const empty = t.isJson ? "null" : Buffer.from([0xc0]);
    const bodies = [Buffer.from("\u0001\u0002 not a packet \ud800", "latin1"), Buffer.from(empty), Buffer.alloc(64, 0xff)];
    for (const body of bodies) await peer.sendBytes("REQ", "w1", body);
    await peer.sendBytes("REQ", "w1", peer.codec.encode([]));
    await peer.sendBytes("REQ", "w1", peer.codec.encode({}));
    const response = await peer.response(await peer.request("w1", "echo.value", { value: "alive" }));
    assert.equal(response.data, "alive");
  });

  await t.checkWeft("-0 comes back from weft as -0", async () => {
    const id = randomUUID();
    const text = `{"ver":"5","sender":"raw","id":"${id}","action":"echo.value","params":{"value":-0.0},"meta":{},"headers":{}}`;
    const packed = Buffer.concat([
      peer.codec.encode({ ver: "5", sender: "raw", id, action: "echo.value" }),
      Buffer.from("a6706172616d7381a576616c7565cb8000000000000000", "hex") // params: {value: -0.0}
    ]);
    packed[0]++; // One more key in the map.
    await peer.sendBytes("REQ", "w1", t.isJson ? Buffer.from(text) : packed);
    const response = await peer.response(id);
    assert.ok(Object.is(response.data, -0), `data ${response.data}`);
  });

  if (t.isTcp) await framing(t, peer);
}

async function infoOf(t, peer, id) {
  if (t.isTcp) {
    // Whoever lists nobody gets everybody's info.
    await peer.send("GOSSIP_REQ", id, { online: { raw: [peer.info.seq, 0, 0] } });
    const fits = ({ sender, online }) => sender === id && online && online[id];
    return (await peer.next("GOSSIP_RES", fits)).fields.online[id][0];
  }
  await peer.send("DISCOVER", id, {});
  return (await peer.next("INFO", ({ sender }) => sender === id)).fields;
}

async function framing(t, peer) {
  await t.check("a frame cut into single bytes is one packet to weft", async () => {
    const id = randomUUID();
    const request = { ver: "5", sender: "raw", id, action: "echo.value", params: { value: "cut" } };
    for (const byte of encodeFrame("REQ", peer.codec.encode(request))) await peer.write("w1", Buffer.from([byte]));
    assert.equal((await peer.response(id)).data, "cut");
  });

  await t.check("thirty frames in one write are thirty packets to weft", async () => {
    const ids = [...Array(30)].map(() => randomUUID());
    const frames = ids.map((id, n) =>
      encodeFrame("REQ", peer.codec.encode({ ver: "5", sender: "raw", id, action: "echo.value", params: { value: n } }))
    );
    await peer.write("w1", Buffer.concat(frames));
    const answers = await Promise.all(ids.map((id) => peer.response(id)));
    assert.deepEqual(answers.map((answer) => answer.data), [...ids.keys()]);
  });

  await t.checkWeft("a frame of an unknown type costs weft nothing but the frame or the socket", async () => {
    const frame = encodeFrame("REQ", peer.codec.encode({ ver: "5", sender: "raw" }));
    frame[5] = 77;
    frame[0] = frame[1] ^ frame[2] ^ frame[3] ^ frame[4] ^ frame[5];
    await peer.write("w1", frame);
    assert.equal((await t.call("echo.whoami", {}, { nodeID: "w1" })).nodeID, "w1");
  });
}
