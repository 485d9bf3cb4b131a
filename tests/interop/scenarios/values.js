"use strict";

// Values through weft and back: what arrives is what was sent, as far as the serializer can say it.

const assert = require("node:assert/strict");

const nested = (depth) => (depth === 0 ? "bottom" : [nested(depth - 1)]);
const nestedMaps = (depth) => (depth === 0 ? 0 : { in: nestedMaps(depth - 1) });

// Own keys that no literal can make.
const withKey = (key, value) => JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(value)}}`);

// [title, value]; where a serializer changes the value itself, {json} or {msgpack} tells what is
// left of it; `only` names the one serializer that can carry it at all.
const VALUES = [
  ["0", 0],
  ["-0, which both serializers write as 0", -0, { json: 0, msgpack: 0 }],
  ["1", 1],
  ["-1", -1],
  ["127 and 128", [127, 128]],
  ["-32 and -33", [-32, -33]],
  ["255 and 256", [255, 256]],
  ["-128 and -129", [-128, -129]],
  ["65535 and 65536", [65535, 65536]],
  ["-32768 and -32769", [-32768, -32769]],
  ["2^31 and its neighbours", [2147483647, 2147483648, -2147483648, -2147483649]],
  ["2^32 and its neighbours", [4294967295, 4294967296, 4294967297]],
  ["2^53 - 1 and its negative", [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]],
  ["2^53 and its negative", [2 ** 53, -(2 ** 53)]],
  ["2^63 and 2^64, as doubles", [2 ** 63, 2 ** 64]],
  ["a time in ms", 1796027683175],
  ["0.5", 0.5],
  ["0.1 and 0.2 and their sum", [0.1, 0.2, 0.1 + 0.2]],
  ["pi", Math.PI],
  ["1e21 and 1e300", [1e21, 1e300]],
  ["the smallest and the largest double", [Number.MIN_VALUE, Number.MAX_VALUE]],
  ["-1.5e-7", -1.5e-7],
  ["16777216.5, too fine for a float", 16777216.5],
  ["not a number", NaN, { json: null, msgpack: NaN }],
  ["infinities", [Infinity, -Infinity], { json: [null, null] }],
  ["true and false", [true, false]],
  ["null", null],
  ["null in a list", [null, 1, null]],
  ["null in a map", { there: null }],
  ["an empty text", ""],
  ["an empty list", []],
  ["an empty map", {}],
  ["empty things inside each other", { a: [], b: {}, c: [[], {}, ""] }],
  ["texts beyond ASCII", ["žluťoučký kůň", "日本語", "🐱‍👤", "\u00a0"]],
  ["control characters", "\u0000\u0001\t\n\r\u001f\u007f"],
  ["quotes, slashes, line separators", "\"\\/\u2028\u2029</script>"],
  ["an unpaired surrogate", ["\ud800", "x\udfff!"], { only: "json" }],
  ["texts that look like other things", ["null", "1", "[[BI]]5", "{\"type\":\"Buffer\"}"]],
  ["31, 32, 255, 256 characters", [31, 32, 255, 256].map((n) => "x".repeat(n))],
  ["a text of 70000 characters", "0123456789".repeat(7000)],
  ["a text of 300000 characters", "ž".repeat(300000)],
  ["an empty key", { "": 1 }],
  ["keys beyond ASCII", { "klíč 🔑": { "": 0 } }],
  ["the key __proto__", withKey("__proto__", { admin: true }), { only: "json" }],
  ["the key constructor", { constructor: { prototype: 1 }, toString: "x" }],
  ["keys that look like numbers", { 1: "a", 0: "b", "-1": "c", "1.5": "d" }],
  ["a map of 20 keys", Object.fromEntries([...Array(20).keys()].map((n) => [`k${n}`, n]))],
  ["a list of 70000 numbers", [...Array(70000).keys()]],
  ["lists 60 deep", nested(60)],
  ["maps 60 deep", nestedMaps(60)],
  ["a list of mixed things", [1, "a", null, true, 1.5, { b: [2] }, [[3]]]],
  ["bytes", Buffer.from([0, 1, 127, 128, 255]), {
    json: { type: "Buffer", data: [0, 1, 127, 128, 255] }
  }],
  ["no bytes", Buffer.alloc(0), { json: { type: "Buffer", data: [] } }],
  ["300 bytes", Buffer.alloc(300, 7), { only: "msgpack" }],
  ["70000 bytes", Buffer.alloc(70000, 9), { only: "msgpack" }],
  ["bytes inside other things", { list: [Buffer.from("abc")] }, {
    json: { list: [{ type: "Buffer", data: [97, 98, 99] }] }
  }],
  ["a date", { at: new Date(1700000000123) }, { json: { at: "2023-11-14T22:13:20.123Z" } }]
];

module.exports = {
  name: "values",

  async run(t) {
    const serializer = t.isJson ? "json" : "msgpack";
    const same = (actual, expected) => {
      if (Buffer.isBuffer(expected)) {
        assert.ok(Buffer.isBuffer(actual), `got ${JSON.stringify(actual)}`);
        assert.equal(actual.toString("hex"), expected.toString("hex"));
      } else {
        assert.deepEqual(actual, expected);
      }
    };

    for (const [title, value, how = {}] of VALUES) {
      if (how.only && how.only !== serializer) continue;
      const expected = serializer in how ? how[serializer] : value;
      await t.check(`${title}: Moleculer to weft and back`, async () => {
        same(await t.call("echo.value", { value }, { nodeID: "w1" }), expected);
      });
      await t.check(`${title}: through weft to Moleculer and back`, async () => {
        same(await t.via("w1", "echo.value", { value }, { nodeID: "j1" }), expected);
      });
    }

    await t.check("a value left out is not there, in either place", async () => {
      const direct = await t.call("echo.reply", { other: 1, value: undefined }, { nodeID: "w1" });
      assert.deepEqual(Object.keys(direct.params), ["other"]);
      const passed = await t.via("w1", "echo.reply", { other: 1, value: undefined }, { nodeID: "j1" });
      assert.deepEqual(Object.keys(passed.params), ["other"]);
    });

    await t.check("null and absent are told apart in params", async () => {
      const { params } = await t.call("echo.reply", { a: null }, { nodeID: "w1" });
      assert.ok("a" in params && params.a === null);
      assert.ok(!("b" in params));
    });

    await t.check("values of all kinds in meta, down and up again", async () => {
      const meta = { n: 2 ** 53, f: 0.1, s: "ž🐱", nul: null, list: [1, [2]], map: { "": {} } };
      const call = t.via("w1", "echo.reply", {}, { nodeID: "j1" }, { meta: { ...meta } });
      assert.deepEqual((await call).meta, meta);
      assert.deepEqual(call.ctx.meta, meta);
    });
  }
};
