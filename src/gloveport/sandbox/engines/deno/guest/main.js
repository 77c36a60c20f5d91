// The entry of the guest in Deno: remove what a guest may not have, send `ready`, wait for the program, and start its run.

import { advanceTo } from "./clock.js";
import { engineVersion, nextTurn, setUnhandledPromiseRejectionHandler } from "./engine.js";
import { nextEvent } from "./events.js";
import { installFiles } from "./files.js";
import { defineFileModules } from "./fs.js";
import { workspace } from "./globals.js";
import { describeLoad, load } from "./load.js";
import { parseJson, promiseThen, quote, TypeError_, Uint8Array_ } from "./primordials.js";
import { seed } from "./random.js";
import { prepare, startRunClock } from "./prepare.js";
import { begin, fail, noteUnhandled, run } from "./run.js";
import { installMentioned, installSurroundings } from "./surroundings.js";
import { timerRequest } from "./timers.js";
import { installTools, rehearsalTools, resetCalls, setClock, settleCall } from "./tools.js";
import { decode, encode } from "./values.js";
import { discard, flush, send } from "./wire.js";

// The first use of a code path costs up to a millisecond (lazy compilation, cold caches). It is paid here in advance.
const REHEARSAL = `export default async (tools) => {
  const given = await tools.warm.up({ list: [1.5, "x", null, true], when: 1 });
  return { given, text: \`\${given}\` };
}`;

async function rehearse() {
  const module = await load({ code: REHEARSAL, dialect: "javascript", entry: "function" }, () => {});
  const running = run(module, "function", { has_input: false }, rehearsalTools());
  discard();
  settleCall(["reply", 0, 1, true, decode(parseJson(encode({ a: [1], b: "", c: { d: null } }, "warm")))]);
  encode(await running, "result");
  timerRequest();
  resetCalls();
}

setUnhandledPromiseRejectionHandler((_promise, reason) => {
  noteUnhandled(reason);
  return true;
});
globalThis.addEventListener("error", (event) => {
  event.preventDefault();
  fail(event.error);
});

const allowWasm = Deno.args[0] === "wasm"; // read here, because `Deno` is removed afterwards
workspace.path = Deno.args[1];
setClock(advanceTo);
installSurroundings(allowWasm);
const tools = installTools();
seed(new Uint8Array_(32));

function takeRun() {
  const start = nextEvent();
  if (start[0] === "rehearse") return promiseThen(rehearse(), () => nextTurn(takeRun));
  if (start[0] === "prepare") {
    installMentioned(start[2].modules.script, false);
    return prepare(start, () => nextTurn(takeRun));
  }
  if (start[0] !== "start") throw new TypeError_("expected a start frame");
  startRunClock(start[1]);
  installMentioned(start[2].code + (start[2].modules?.script ?? ""));
  if (start[2].state !== undefined) {
    installFiles();
    defineFileModules();
  }
  begin(start[2], tools, load, describeLoad);
}

// In a turn of its own, so that the engine finishes evaluating its entry before a run.
nextTurn(() => {
  send(`["ready",1,${quote(`deno ${engineVersion}`)}]`);
  flush();
  takeRun();
});
