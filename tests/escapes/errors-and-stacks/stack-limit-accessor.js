// Tries: an accessor in the place of Error.stackTraceLimit, which runs in the middle of the prelude's work and makes
// calls of its own there.
// Origin: own idea, after vm2's prepareStackTrace re-entrancy (CVE-2023-29199).
// control: naive prelude

let depth = 0;
Object.defineProperty(Error, "stackTraceLimit", {
  configurable: true,
  get: () => 10,
  set: () => {
    if (depth++ < 3) tools.add(1, 1).catch(() => {});
  },
});
Object.defineProperty(Error, "captureStackTrace", {
  configurable: true,
  value: (site) => {
    site.stack = "";
    if (depth++ < 3) tools.add(2, 2);
  },
});
try {
  return await tools.add(1, 2);
} finally {
  delete Error.stackTraceLimit;
}
