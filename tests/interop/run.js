#!/usr/bin/env node
"use strict";

// Runs weft against real Moleculer nodes and reports one line per check.
// See README.md for the options.

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const USAGE = `usage: run.js --modules DIR (--weft-as-js | --runner FILE --fixture FILE --cli FILE) [options]
  --modules DIR        the folder that install.sh filled (or WEFT_INTEROP_MODULES)
  --runner FILE        weft-runner
  --fixture FILE       the fixture service, a shared object
  --cli FILE           the weft command line
  --weft-as-js         a Moleculer node stands in for every weft node
  --only PATTERN       only parts whose "scenario/part" matches (a regular expression)
  --transporter NAME   only tcp or nats
  --serializer NAME    only json or msgpack
  --jobs N             scenarios at a time (default 3)
  --list               names the parts and ends
  --log-level LEVEL    of the child processes (default warn)
  --verbose            logs of the driver's own brokers, too
  --keep-logs          keeps the logs of a run without failures`;

// A run that takes longer hangs.
const RUN_MS = 20 * 60 * 1000;
// A complete run has at least so many checks, or something is not being tested.
const CHECKS_MIN = 120;

function parseArguments(argv) {
  const options = { jobs: 3, logLevel: "warn", modules: process.env.WEFT_INTEROP_MODULES };
  const flags = ["--weft-as-js", "--list", "--verbose", "--keep-logs", "--help"];
  const values = [
    "--modules", "--runner", "--fixture", "--cli", "--only", "--transporter", "--serializer", "--jobs", "--log-level"
  ];
  const key = (word) => word.slice(2).replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  for (let i = 0; i < argv.length; i++) {
    if (flags.includes(argv[i])) options[key(argv[i])] = true;
    else if (values.includes(argv[i]) && i + 1 < argv.length) options[key(argv[i])] = argv[++i];
    else throw new Error(`unknown or incomplete option ${argv[i]}`);
  }
  options.jobs = Number(options.jobs);
  if (!(options.jobs >= 1)) throw new Error("--jobs takes a number from 1");
  for (const [name, allowed] of [["transporter", ["tcp", "nats"]], ["serializer", ["json", "msgpack"]]]) {
    if (options[name] === undefined) continue;
    options[name] = options[name].toLowerCase();
    if (!allowed.includes(options[name])) throw new Error(`--${name} takes ${allowed.join(" or ")}`);
  }
  if (options.help || options.list) return options;
  if (!options.modules) throw new Error("--modules is missing");
  if (!options.weftAsJs) {
    for (const name of ["runner", "fixture", "cli"]) {
      if (!options[name]) throw new Error(`--${name} is missing`);
      options[name] = path.resolve(options[name]);
      if (!fs.existsSync(options[name])) throw new Error(`--${name}: there is no ${options[name]}`);
    }
  }
  return options;
}

// What is to be run: one entry per scenario, transporter and serializer, with its chosen parts.
function plan(scenarios, options) {
  const only = options.only === undefined ? null : new RegExp(options.only);
  const jobs = [];
  for (const scenario of scenarios) {
    const parts = scenario.parts.filter((part) => !only || only.test(`${scenario.name}/${part.name}`));
    if (parts.length === 0) continue;
    for (const transporter of scenario.transporters || ["tcp", "nats"]) {
      if (options.transporter && options.transporter !== transporter) continue;
      for (const serializer of ["JSON", "MsgPack"]) {
        if (options.serializer && options.serializer !== serializer.toLowerCase()) continue;
        jobs.push({ scenario, parts, combo: { transporter, serializer } });
      }
    }
  }
  return jobs;
}

async function runScenario({ scenario, parts, combo }, world, report) {
  const { Context } = require("./lib/context");
  const t = new Context(world, combo, report);
  t.part = scenario.name;
  try {
    await scenario.open(t);
    for (const part of parts) {
      t.part = part.name;
      await part.run(t);
    }
  } catch (err) {
    err.stack = `${err.stack}\n${t.lastWords()}`;
    report.fail(t.title("goes through"), err);
  } finally {
    await t.close();
  }
}

async function runAll(options, scenarios) {
  const { Report } = require("./lib/report");
  const { startNatsServer } = require("./lib/nats_server");
  const logDir = fs.mkdtempSync(path.join(os.tmpdir(), "weft-interop-"));
  const report = new Report();
  const jobs = plan(scenarios, options);
  const started = Date.now();
  const watchdog = setTimeout(() => {
    console.log(`the run took longer than ${RUN_MS / 1000} s; logs in ${logDir}`);
    report.fail("the run ends in its time", new Error("hung"));
    report.finish();
    process.exit(1);
  }, RUN_MS);

  const nats = jobs.some((job) => job.combo.transporter === "nats") ? await startNatsServer(logDir) : null;
  const world = {
    weftAsJs: Boolean(options.weftAsJs),
    runner: options.runner,
    fixture: options.fixture,
    cli: options.cli,
    logLevel: options.logLevel,
    verbose: Boolean(options.verbose),
    natsUrl: nats && nats.url,
    logDir
  };
  const lanes = [...Array(Math.min(options.jobs, jobs.length))].map(async () => {
    for (let job = jobs.shift(); job; job = jobs.shift()) await runScenario(job, world, report);
  });
  await Promise.all(lanes);
  if (nats) await nats.child.end();
  clearTimeout(watchdog);

  const filtered = options.only || options.transporter || options.serializer;
  if (!filtered && report.number < CHECKS_MIN) {
    report.fail("a complete run", new Error(`only ${report.number} checks of at least ${CHECKS_MIN}`));
  }
  console.log(`${((Date.now() - started) / 1000).toFixed(1)} s`);
  if (report.failures.length > 0 || options.keepLogs) console.log(`logs in ${logDir}`);
  else fs.rmSync(logDir, { recursive: true, force: true });
  return report.finish();
}

async function main() {
  let options;
  try {
    options = parseArguments(process.argv.slice(2));
  } catch (err) {
    console.error(`${err.message}\n${USAGE}`);
    return 2;
  }
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  const scenarios = require("./scenarios");
  if (options.list) {
    for (const { scenario, parts, combo } of plan(scenarios, options)) {
      const names = parts.map((part) => `${scenario.name}/${part.name}`);
      for (const name of names) console.log(`${combo.transporter} ${combo.serializer.toLowerCase()} ${name}`);
    }
    return 0;
  }
  process.env.WEFT_INTEROP_MODULES = options.modules;
  return (await runAll(options, scenarios)) ? 0 : 1;
}

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));
process.on("uncaughtException", (err) => {
  console.error(err);
  process.exit(1);
});
main().then((code) => process.exit(code));
