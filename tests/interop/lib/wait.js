"use strict";

// Waiting, always with an end: for a promise or for a condition that has no event to await.
//
// The ends are far out: what they bound takes well under a second on an idle machine, but tens of
// seconds when all its cores are busy with something else.

// Rejects when `promise` has not settled within `ms`.
function within(ms, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Asks `probe` again and again until it returns something truthy, and returns that.
// A throwing probe counts as "not yet"; what it threw is part of the final error.
async function until(what, probe, { ms = 20000, every = 25 } = {}) {
  const deadline = Date.now() + ms;
  let last = "";
  for (;;) {
    const left = deadline - Date.now();
    if (left <= 0) throw new Error(`waited ${ms} ms for ${what}${last && ` (last: ${last})`}`);
    try {
      const answer = await within(left, what, Promise.resolve(probe()));
      if (answer) return answer;
      last = "";
    } catch (err) {
      last = err.message;
    }
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}

module.exports = { within, until };
