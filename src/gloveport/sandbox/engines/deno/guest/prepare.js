// Preparation: a process imports the packages of recent programs before a program comes. It has a time of its own, randomness
// that begins from the seed of the run that will come, and nothing else of it. A process in which this did more than import
// says so, and is not used.

import { restartClock, startClock } from "./clock.js";
import { nextTurn, runMicrotasks } from "./engine.js";
import { installProcess } from "./globals.js";
import { installModules, runScript } from "./modules.js";
import { fromBase64, promiseThen } from "./primordials.js";
import { seed } from "./random.js";
import { isUntouched } from "./run.js";
import { flush, hasQueued, send } from "./wire.js";

let isPrepared = false;

/** Handles a `prepare` event, then calls `next` in a turn of its own. */
export function prepare(event, next) {
  const { seed: key, modules } = event[2];
  isPrepared = true;
  startClock(event[1]);
  seed(fromBase64(key));
  installProcess({});
  const done = (fit) =>
    nextTurn(() => {
      runMicrotasks();
      send(`["prepared",${fit && isUntouched() && !hasQueued()}]`);
      flush();
      next();
    });
  promiseThen(promiseThen(installModules(modules), runScript), () => done(true), () => done(false));
}

/** Starts the clock of a run. */
export function startRunClock(time) {
  if (isPrepared) restartClock(time);
  else startClock(time);
}
