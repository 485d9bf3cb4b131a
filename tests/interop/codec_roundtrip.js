#!/usr/bin/env node
"use strict";

// Reads what weft wrote with Moleculer's own serializers, and has weft's meaning compared with theirs.
//
//   codec_roundtrip.js --modules DIR --writer build/tests/interop/codec_roundtrip
//
// One line a failure; the last line is "N passed, N failed".

const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { isDeepStrictEqual, inspect } = require("node:util");

function argument(name) {
  const at = process.argv.indexOf(name);
  if (at > 0 && at + 1 < process.argv.length) return path.resolve(process.argv[at + 1]);
  console.error("usage: codec_roundtrip.js --modules DIR --writer FILE");
  process.exit(2);
}

process.env.WEFT_INTEROP_MODULES = argument("--modules");
const writer = argument("--writer");
const { Serializers } = require("./lib/deps.js").moleculer();

// What a marker stands for. Objects have no prototype here, so that a key named __proto__ is a key.
function unmark(value) {
  if (Array.isArray(value)) return value.map(unmark);
  if (value === null || typeof value !== "object") return value;
  if (typeof value.$number === "string") return Number(value.$number);
  if (typeof value.$bytes === "string") return Buffer.from(value.$bytes, "hex");
  if (typeof value.$date === "number") return new Date(value.$date);
  return plain(Object.entries(value).map(([key, item]) => [key, unmark(item)]));
}

// The same shape for both sides: maps as sorted lists, bytes as hex. isDeepStrictEqual tells 0 from -0.
function plain(entries) {
  return { map: entries.sort(([a], [b]) => (a < b ? -1 : 1)) };
}
function normal(value) {
  if (Buffer.isBuffer(value) || value instanceof Uint8Array) return { bytes: Buffer.from(value).toString("hex") };
  if (value instanceof Date) return { date: value.getTime() };
  if (Array.isArray(value)) return value.map(normal);
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value.map) && Object.keys(value).length === 1) {
    return { map: value.map.map(([key, item]) => [key, normal(item)]) };
  }
  return plain(Object.entries(value).map(([key, item]) => [key, normal(item)]));
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "weft-codec-"));
let passed = 0;
let failed = 0;
try {
  execFileSync(writer, [folder], { stdio: "inherit" });
  for (const name of ["JSON", "MsgPack"]) {
    const serializer = new Serializers[name]();
    serializer.init({});
    for (const row of JSON.parse(fs.readFileSync(path.join(folder, `${name}.json`), "utf8"))) {
      let seen;
      try {
        seen = normal(serializer.deserialize(fs.readFileSync(path.join(folder, row.file))));
      } catch (error) {
        seen = error;
      }
      const expected = normal(unmark(row.expected));
      if (isDeepStrictEqual(seen, expected)) {
        passed++;
      } else {
        failed++;
        const show = (value) => inspect(value, { depth: 6, breakLength: Infinity, maxStringLength: 200 });
        console.log(`FAIL ${name} ${row.name}\n  seen      ${show(seen)}\n  expected  ${show(expected)}`);
      }
    }
  }
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
