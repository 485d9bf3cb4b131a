"use strict";

// The ring of the Shard strategy, written from its description and not from anyone's code: the
// yardstick for what both sides choose.

const { createHash } = require("node:crypto");

const VNODES = 10;
const SPACE = 2 ** 32;

function hashOf(key) {
  return parseInt(createHash("md5").update(String(key), "utf8").digest("hex").slice(0, 8), 16);
}

// The node among `ids` that `key` belongs to.
function shardOf(key, ids) {
  const sorted = [...ids].sort();
  const slices = sorted.length * VNODES;
  const hash = hashOf(key);
  for (let position = 1; position <= slices; position++) {
    const bound = position === slices ? SPACE : Math.floor((SPACE / slices) * position);
    if (hash <= bound) return sorted[(position - 1) % sorted.length];
  }
  throw new Error("the last bound covers every hash");
}

module.exports = { shardOf };
