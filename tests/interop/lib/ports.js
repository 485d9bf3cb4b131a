"use strict";

// Free TCP ports on this host, handed out once per run.
//
// Below the range the kernel gives to outgoing sockets, so that no connection of a running test
// takes a port between its being found free and its node's listening.

const net = require("node:net");

const FIRST = 12000;
const LAST = 31999;
let next = FIRST + Math.floor(Math.random() * (LAST - FIRST));

function isFree(port) {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "::", ipv6Only: false, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

async function freePort() {
  for (let tries = 0; tries < 1000; tries++) {
    const port = next;
    next = next === LAST ? FIRST : next + 1;
    if (await isFree(port)) return port;
  }
  throw new Error("no free TCP port found");
}

module.exports = { freePort };
