"use strict";

// All scenarios. Each opens one mesh and runs its parts in it, in order; different scenarios, and
// the same scenario with another transporter or serializer, are independent.

module.exports = [
  require("./lifecycle"),
  require("./core"),
  require("./balancing"),
  require("./shard"),
  require("./dependencies"),
  require("./balanced_mode"),
  require("./isolation"),
  require("./udp")
];
