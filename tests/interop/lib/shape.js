"use strict";

// Compares the shape of two values: the same keys and the same types, whatever the content.

function typeOf(value) {
  if (value === null || value === undefined) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

// The ways in which `actual` lacks what `reference` has, as texts; none means it fits.
// null fits everything: it means "not known here". Further keys in `actual` are allowed.
// `skip` names paths whose content is each node's own affair.
function misfits(actual, reference, { skip = [], path = "" } = {}) {
  if (skip.includes(path)) return [];
  const [is, should] = [typeOf(actual), typeOf(reference)];
  if (is === "null" || should === "null") return [];
  if (is !== should) return [`${path || "value"} is ${is}, not ${should}`];
  if (is === "array") {
    if (reference.length === 0 || actual.length === 0) return [];
    return misfits(actual[0], reference[0], { skip, path: `${path}[]` });
  }
  if (is !== "object") return [];
  return Object.keys(reference).flatMap((key) => {
    const inner = path === "" ? key : `${path}.${key}`;
    if (skip.includes(inner)) return [];
    if (reference[key] === null || reference[key] === undefined) return [];
    if (!(key in actual)) return [`${inner} is missing`];
    return misfits(actual[key], reference[key], { skip, path: inner });
  });
}

module.exports = { misfits };
