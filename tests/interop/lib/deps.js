"use strict";

// The npm packages, from the folder that install.sh filled. The checkout itself holds none.

const { createRequire } = require("node:module");
const path = require("node:path");

function requireFrom(name) {
  const folder = process.env.WEFT_INTEROP_MODULES;
  if (!folder) throw new Error("WEFT_INTEROP_MODULES must name the folder that install.sh filled");
  return createRequire(path.join(path.resolve(folder), "package.json"))(name);
}

module.exports = {
  moleculer: () => requireFrom("moleculer"),
  nats: () => requireFrom("nats"),
  msgpack5: () => requireFrom("msgpack5")
};
