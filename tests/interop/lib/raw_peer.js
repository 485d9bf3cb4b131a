"use strict";

// A peer made of bytes: speaks the protocol by hand, so that a scenario can send what no real node
// would and see exactly what is sent back.

const { randomUUID } = require("node:crypto");
const net = require("node:net");

const deps = require("./deps");
const { within } = require("./wait");

const FRAME_TYPES = ["EVENT", "REQ", "RES", "PING", "PONG", "GOSSIP_REQ", "GOSSIP_RES", "GOSSIP_HELLO"];
const HEADER_BYTES = 6;

function encodeFrame(type, payload) {
  const frame = Buffer.alloc(HEADER_BYTES + payload.length);
  frame.writeInt32BE(frame.length, 1);
  frame[5] = FRAME_TYPES.indexOf(type) + 1;
  frame[0] = frame[1] ^ frame[2] ^ frame[3] ^ frame[4] ^ frame[5];
  payload.copy(frame, HEADER_BYTES);
  return frame;
}

class RawPeer {
  constructor(mesh, id) {
    this.mesh = mesh;
    this.id = id;
    this.packets = []; // What arrived: {type, fields, bytes}, oldest first.
    this.watchers = new Set();
    const msgpack = deps.msgpack5()();
    this.codec =
      mesh.combo.serializer === "JSON"
        ? { encode: (value) => Buffer.from(JSON.stringify(value)), decode: (bytes) => JSON.parse(bytes) }
        : { encode: (value) => msgpack.encode(value).slice(), decode: (bytes) => msgpack.decode(bytes) };
  }

  static async open(mesh, id, services = []) {
    const peer = new (mesh.isTcp ? TcpPeer : NatsPeer)(mesh, id);
    peer.info = {
      services,
      ipList: ["127.0.0.1"],
      hostname: "127.0.0.1",
      client: { type: "raw", version: "1", langVersion: "1" },
      config: {},
      instanceID: randomUUID(),
      metadata: {},
      seq: 1
    };
    await peer.connect();
    return peer;
  }

  // Sends a packet; `fields` may override `ver` and `sender`.
  send(type, target, fields) {
    return this.sendBytes(type, target, this.codec.encode({ ver: "5", sender: this.id, ...fields }));
  }

  // A REQ with all its usual fields, answered by a RES with the returned id.
  async request(target, action, params, fields = {}) {
    const id = randomUUID();
    await this.send("REQ", target, {
      id, action, params, meta: {}, headers: {}, timeout: 0, level: 1, tracing: null,
      parentID: null, requestID: id, caller: null, stream: false, ...fields
    });
    return id;
  }

  arrived(type, bytes) {
    let fields;
    try {
      fields = this.codec.decode(bytes);
    } catch (error) {
      fields = { undecodable: error.message };
    }
    const packet = { type, fields, bytes };
    this.packets.push(packet);
    for (const watcher of [...this.watchers]) watcher(packet);
  }

  // The first packet of `type` that fits `accept`, already here or within `ms`.
  next(type, accept = () => true, ms = 20000) {
    const fits = (packet) => packet.type === type && accept(packet.fields);
    const here = this.packets.find(fits);
    if (here) return Promise.resolve(here);
    let watcher;
    const found = new Promise((resolve) => {
      watcher = (packet) => fits(packet) && resolve(packet);
      this.watchers.add(watcher);
    });
    return within(ms, `${type} to ${this.id}`, found).finally(() => this.watchers.delete(watcher));
  }

  async response(id, ms) {
    return (await this.next("RES", (fields) => fields.id === id, ms)).fields;
  }

  // Serves an action: `answer(fields)` gives the fields of the RES beyond `id`.
  serve(action, answer) {
    this.watchers.add(({ type, fields }) => {
      if (type !== "REQ" || fields.action !== action) return;
      const plain = { id: fields.id, meta: fields.meta, headers: {}, success: true, data: null };
      Promise.resolve(this.send("RES", fields.sender, { ...plain, ...answer(fields) })).catch(() => {});
    });
  }
}

class NatsPeer extends RawPeer {
  async connect() {
    this.prefix = `MOL-${this.mesh.namespace}`;
    this.client = await deps.nats().connect({ servers: this.mesh.world.natsUrl });
    for (const subject of [`${this.prefix}.*`, `${this.prefix}.*.${this.id}`]) {
      this.client.subscribe(subject, {
        callback: (error, message) => {
          if (!error) this.arrived(message.subject.slice(this.prefix.length + 1).split(".")[0], Buffer.from(message.data));
        }
      });
    }
    await this.client.flush();
  }

  async sendBytes(type, target, bytes) {
    this.client.publish(target === null ? `${this.prefix}.${type}` : `${this.prefix}.${type}.${target}`, bytes);
    await this.client.flush();
  }

  // Makes the peer known to all nodes.
  announce(fields = {}) {
    return this.send("INFO", null, { ...this.info, ...fields });
  }

  close() {
    return this.client.close();
  }
}

class TcpPeer extends RawPeer {
  async connect() {
    this.port = this.mesh.ports.get(this.id);
    this.info.port = this.port;
    this.links = new Map(); // target → socket that this peer opened
    this.inbound = new Set();
    this.server = net.createServer((socket) => this.accepted(socket));
    await new Promise((resolve) => this.server.listen(this.port, resolve));
    this.watchers.add((packet) => {
      if (packet.type === "GOSSIP_REQ") this.answerGossip(packet.fields);
    });
  }

  accepted(socket) {
    this.inbound.add(socket);
    let buffered = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("close", () => this.inbound.delete(socket));
    socket.on("data", (chunk) => {
      buffered = Buffer.concat([buffered, chunk]);
      while (buffered.length >= HEADER_BYTES && buffered.length >= buffered.readInt32BE(1)) {
        const length = buffered.readInt32BE(1);
        this.arrived(FRAME_TYPES[buffered[5] - 1], buffered.subarray(HEADER_BYTES, length));
        buffered = buffered.subarray(length);
      }
    });
  }

  answerGossip({ sender, online = {}, offline = {} }) {
    const known = offline[this.id] || (online[this.id] || [0])[0];
    if (offline[this.id] >= this.info.seq) this.info.seq = offline[this.id] + 1;
    if (known < this.info.seq) {
      this.send("GOSSIP_RES", sender, { online: { [this.id]: [this.info, 0, 0] } }).catch(() => {});
    }
  }

  // The open connection to `target`.
  async link(target) {
    const open = this.links.get(target);
    if (open && !open.destroyed) return open;
    const socket = net.connect({ port: this.mesh.ports.get(target), host: "127.0.0.1", noDelay: true });
    this.links.set(target, socket);
    // Queued before anything else can be: the first frame of a connection is the HELLO.
    const hello = { ver: "5", sender: this.id, host: "127.0.0.1", port: this.port };
    socket.write(encodeFrame("GOSSIP_HELLO", this.codec.encode(hello)));
    await within(10000, `connection to ${target}`, new Promise((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    }));
    socket.on("error", () => {});
    return socket;
  }

  async sendBytes(type, target, bytes) {
    (await this.link(target)).write(encodeFrame(type, bytes));
  }

  // Bytes as they are, framed or not.
  async write(target, bytes) {
    (await this.link(target)).write(bytes);
  }

  // Makes the peer known to every node that runs in the mesh.
  async announce() {
    for (const target of this.mesh.nodes.keys()) {
      await this.send("GOSSIP_RES", target, { online: { [this.id]: [this.info, 0, 0] } });
    }
  }

  async close() {
    for (const socket of [...this.links.values(), ...this.inbound]) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

module.exports = { RawPeer, encodeFrame };
