"use strict";

// The `weft` command line as an observer node in a mesh with Moleculer.

const assert = require("node:assert/strict");
const path = require("node:path");

const { run } = require("../lib/children");

module.exports = {
  name: "command line",

  async run(t) {
    const { world, mesh } = t;
    const [command, first] = world.weftAsJs
      ? [process.execPath, [path.join(__dirname, "..", "js", "cli.js")]]
      : [world.cli, []];
    const weft = (...words) => {
      const transporter = t.isTcp ? ["w1", "w2", "j1"].map((id) => mesh.address(id)).join(",") : world.natsUrl;
      const options = ["--transporter", transporter, "--namespace", mesh.namespace, "--timeout", "20", "--json"];
      const env = { ...process.env, SERIALIZER: t.combo.serializer, UDP_DISCOVERY: "false" };
      return run(`weft ${words[0]}`, command, [...first, ...words, ...options], { env, ms: 40000 });
    };

    await t.check("weft call: an action of a Moleculer service", async () => {
      const { code, stdout, stderr } = await weft("call", "probe.context", '{"a":[1,null]}');
      assert.equal(code, 0, stderr);
      assert.deepEqual(JSON.parse(stdout).params, { a: [1, null] });
    });

    await t.check("weft call: a failure is told and exits non-zero", async () => {
      const { code, stdout, stderr } = await weft("call", "probe.quota");
      assert.notEqual(code, 0);
      assert.match(stdout + stderr, /over quota/);
    });

    await t.check("weft ping: a Moleculer node answers", async () => {
      const { code, stdout, stderr } = await weft("ping", "j1");
      assert.equal(code, 0, stderr);
      assert.match(JSON.stringify(JSON.parse(stdout)), /"j1"/);
    });

    await t.check("weft ping: nobody of that name, exit non-zero", async () => {
      const { code } = await weft("ping", "nobody");
      assert.notEqual(code, 0);
    });

    await t.check("weft nodes lists nodes of both kinds", async () => {
      const { code, stdout, stderr } = await weft("nodes");
      assert.equal(code, 0, stderr);
      const text = JSON.stringify(JSON.parse(stdout));
      for (const id of ["w1", "j1"]) assert.ok(text.includes(`"${id}"`), `${id} in ${text}`);
    });
  }
};
