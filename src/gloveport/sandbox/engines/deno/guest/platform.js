// Asynchronous work of the platform (hashing, compiling WebAssembly): one after the other, in the order of asking. It ends
// whenever the engine's threads are done, sometimes even at once; so what came of it is kept until the guest has gone quiet,
// and handed over then, as an event would be.

import { create, Promise_, promiseResolve, promiseThen } from "./primordials.js";

class Work {
  run;
  resolve;
  reject;
  constructor(run, resolve, reject) {
    this.run = run;
    this.resolve = resolve;
    this.reject = reject;
  }
}

const waiting = create(null);
let first = 0;
let last = 0;
let current = null;
let handOver = null; // settles the current work's promise, once there is something to settle it with

/** A promise for what `run` gives, which may be a promise of the platform. */
export function platform(run) {
  return new Promise_((resolve, reject) => {
    waiting[last++] = new Work(run, resolve, reject);
    if (current === null) startNext();
  });
}

function startNext() {
  current = null;
  if (first === last) return;
  const work = current = waiting[first];
  delete waiting[first++];
  const fail = (error) => handOver = () => work.reject(error);
  try {
    promiseThen(promiseResolve(work.run()), (value) => handOver = () => work.resolve(value), fail);
  } catch (error) {
    fail(error);
  }
}

/** True while any is under way: the guest is not quiet then. */
export function platformBusy() {
  return current !== null;
}

/** Hands over what has come of the work under way, if anything has; to be called when all microtasks are done. */
export function deliverWork() {
  if (handOver === null) return false;
  const settle = handOver;
  handOver = null;
  settle();
  startNext();
  return true;
}
