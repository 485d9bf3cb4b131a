"use strict";

// One nats-server on a free loopback port for the whole run.

const fs = require("node:fs");
const path = require("node:path");

const deps = require("./deps");
const { Child } = require("./children");
const { freePort } = require("./ports");
const { until } = require("./wait");

// Debian puts it into /usr/sbin, which a user's PATH often lacks.
function findServer() {
  const folders = (process.env.PATH || "").split(":").concat("/usr/sbin", "/usr/local/sbin");
  const found = folders.map((folder) => path.join(folder, "nats-server")).find((file) => fs.existsSync(file));
  if (!found) throw new Error("nats-server is not installed");
  return found;
}

async function startNatsServer(logDir) {
  const port = await freePort();
  const child = new Child("nats-server", findServer(), ["-a", "127.0.0.1", "-p", String(port)], {
    env: process.env,
    log: path.join(logDir, "nats-server.log")
  });
  const url = `nats://127.0.0.1:${port}`;
  await until("nats-server to accept", async () => {
    if (child.result) throw new Error("nats-server exited");
    const connection = await deps.nats().connect({ servers: url, reconnect: false, timeout: 1000 });
    await connection.close();
    return true;
  });
  return { url, child };
}

module.exports = { startNatsServer };
