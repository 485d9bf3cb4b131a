"use strict";

// The mesh that most parts share: two weft nodes, one Moleculer node, and the driver's broker.

module.exports = {
  name: "core",
  parts: [
    require("./discovery"),
    require("./calls"),
    require("./chain"),
    require("./errors"),
    require("./values"),
    require("./events"),
    require("./node_service"),
    require("./ping"),
    require("./basic"),
    require("./late_service"),
    require("./wire"),
    require("./version"),
    require("./command_line")
  ],

  async open(t) {
    // `old` and `raw` are peers made of bytes; they come and go.
    const ids = ["ctl", "w1", "w2", "j1", "raw", "old"];
    await t.openMesh("core", { ids });
    t.mesh.start("w1", "weft", { METADATA: JSON.stringify({ zone: "west", rack: { row: 7 } }) });
    t.mesh.start("w2", "weft", { PREFER_LOCAL: "false", RETRIES: "2" });
    t.mesh.start("j1", "js", { METADATA: JSON.stringify({ zone: "east" }) });
    t.ctl = await t.mesh.broker("ctl");
    await t.mesh.converge(t.ctl);
  }
};
