// The entry of the guest in QuickJS. Before the fork, it removes what a guest may not have. After it, it sends `ready`,
// waits for the program and runs it.

import { advanceTo, startClock } from "./clock.js";
import { engineVersion, limitMemory, runMicrotasks, setUnhandled, takeTurns, track } from "./engine.js";
import { nextEvent } from "./events.js";
import { describeLoad, load } from "./load.js";
import { parseJson, promiseThen, quote, TypeError_, Uint8Array_ } from "./primordials.js";
import { seed } from "./random.js";
import { begin, noteUnhandled, run } from "./run.js";
import { installSurroundings } from "./surroundings.js";
import { timerRequest } from "./timers.js";
import { installTools, rehearsalTools, resetCalls, setClock, settleCall } from "./tools.js";
import { decode, encode } from "./values.js";
import { flush, send } from "./wire.js";

// A fork pays for a copy of each page that it writes to. It pays before it sends `ready`, for what most programs do.
const REHEARSAL = `export default async (tools) => {
  const given = await tools.warm.up({ list: [1.5, "x", null, true], when: 1 });
  const rows = Array.from({ length: 40 }, (_, i) => ({ id: i, total: (i * 37) % 101, city: ["a", "b", "c"][i % 3] }));
  const sums = {};
  for (const row of rows) {
    const sum = sums[row.city] ??= { count: 0, total: 0, largest: null };
    sum.count += 1;
    sum.total += row.total;
  }
  const ranking = Object.entries(sums).map(([city, sum]) => ({ city, mean: sum.total / sum.count, ...sum }));
  ranking.sort((a, b) => b.total - a.total);
  const lines = ranking.map((row) => \`\${row.city.padEnd(6)} \${row.total.toFixed(2)} \${JSON.stringify(row)}\`);
  const words = lines.flatMap((line) => line.split(/\\s+/)).filter(Boolean);
  return { given, lines, words, known: new Set(words).size, text: \`\${given}\` };
}`;

function main() {
  send(`["ready",1,${quote(`quickjs ${engineVersion}`)}]`);
  flush();
  const start = nextEvent();
  if (start[0] !== "start") throw new TypeError_("expected a start frame");
  startClock(start[1]);
  limitMemory(start[2].memory_mb);
  begin(start[2], tools, load, describeLoad);
  runMicrotasks(); // a program that could not be parsed has no turn of its own
  takeTurns();
}

/** Runs a small program to warm up. The caller drops what it sends. */
function rehearse(name) {
  promiseThen(load({ code: REHEARSAL }, () => {}, name), (module) => {
    const running = run(module, "function", { has_input: false }, rehearsalTools());
    settleCall(["reply", 0, 1, true, decode(parseJson(encode({ a: [1], b: "", c: { d: null } }, "warm")))]);
    promiseThen(running, (value) => encode(value, "result"));
  });
  runMicrotasks();
  timerRequest();
  resetCalls();
}

setUnhandled(noteUnhandled);
setClock(advanceTo);
installSurroundings(globalThis.$$allowEval === true); // it removes that global, too
const tools = installTools();
seed(new Uint8Array_(32));
globalThis.$$entry = { main, rehearse, track };
