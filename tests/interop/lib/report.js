"use strict";

// Counts the checks and prints one line for each.

class Report {
  constructor({ verbose = true } = {}) {
    this.verbose = verbose;
    this.number = 0;
    this.passed = 0;
    this.failures = [];
    this.skipped = 0;
  }

  pass(title) {
    this.number++;
    this.passed++;
    if (this.verbose) console.log(`ok ${this.number} ${title}`);
  }

  fail(title, error) {
    this.number++;
    this.failures.push(title);
    console.log(`not ok ${this.number} ${title}`);
    console.log(String(error.stack || error).replace(/^/gm, "    "));
  }

  // A check that does not apply to this run; neither passed nor failed.
  skip(title, why) {
    this.skipped++;
    if (this.verbose) console.log(`skip ${title} (${why})`);
  }

  finish() {
    if (this.failures.length > 0) {
      console.log("\nfailed:");
      for (const title of this.failures) console.log(`  ${title}`);
    }
    if (this.skipped > 0) console.log(`${this.skipped} skipped`);
    console.log(`${this.passed} passed, ${this.failures.length} failed`);
    return this.failures.length === 0 && this.passed > 0;
  }
}

module.exports = { Report };
