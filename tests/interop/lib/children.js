"use strict";

// Child processes that cannot outlive the driver.
//
// Three nets: each owner stops its children; the driver's exit kills what is left; and where the
// system has setpriv, the kernel kills them even when the driver itself was killed.

const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");

const { within } = require("./wait");

const alive = new Set();
process.on("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

const hasSetpriv =
  spawnSync("setpriv", ["--pdeathsig", "KILL", "--", "true"], { stdio: "ignore" }).status === 0;

class Child {
  // `log` is the file that gets both output streams; null leaves them to `onOutput`.
  constructor(name, command, args, { env, log = null }) {
    this.name = name;
    const out = log === null ? "pipe" : fs.openSync(log, "a");
    const [file, argv] = hasSetpriv
      ? ["setpriv", ["--pdeathsig", "KILL", "--", command, ...args]]
      : [command, args];
    this.process = spawn(file, argv, { env, stdio: ["ignore", out, out] });
    if (log !== null) fs.closeSync(out);
    alive.add(this.process);
    // Resolves with {code, signal}; a command that cannot be run counts as code 127.
    this.exited = new Promise((resolve) => {
      this.process.once("error", (error) => resolve({ code: 127, signal: null, error }));
      this.process.once("exit", (code, signal) => resolve({ code, signal }));
    }).then((result) => {
      alive.delete(this.process);
      this.result = result;
      return result;
    });
    this.result = null;
  }

  signal(name) {
    if (this.result === null) this.process.kill(name);
  }

  waitExit(ms) {
    return within(ms, `exit of ${this.name}`, this.exited);
  }

  // SIGTERM, and SIGKILL for one that does not listen.
  async end(ms = 10000) {
    this.signal("SIGTERM");
    try {
      return await this.waitExit(ms);
    } catch {
      this.signal("SIGKILL");
      return this.waitExit(10000);
    }
  }

  async kill() {
    this.signal("SIGKILL");
    return this.waitExit(10000);
  }
}

// Runs a command to its end and returns {code, signal, stdout, stderr}.
async function run(name, command, args, { env, ms }) {
  const child = new Child(name, command, args, { env });
  const text = { stdout: "", stderr: "" };
  child.process.stdout.on("data", (data) => (text.stdout += data));
  child.process.stderr.on("data", (data) => (text.stderr += data));
  const closed = new Promise((resolve) => child.process.once("close", resolve));
  try {
    const result = await child.waitExit(ms);
    if (!result.error) await closed;
    return { ...result, ...text };
  } catch (err) {
    await child.kill();
    throw new Error(`${err.message}; output: ${text.stdout}${text.stderr}`);
  }
}

module.exports = { Child, run };
