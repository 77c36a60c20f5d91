// Asynchronous work of the platform (hashing, compiling WebAssembly), one task after the other, in order. A task ends when
// the engine's threads are done, sometimes at once. Its result is kept until the guest is quiet and is delivered then, like
// an event.

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
let handOver = null; // settles the promise of the current task, once it has a result

/** Returns a promise for the result of `run`, which may be a promise of the platform. */
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

/** Returns whether any task is pending: the guest is not quiet then. */
export function platformBusy() {
  return current !== null;
}

/** Delivers the result of the current task, if there is one. Call it when all microtasks are done. */
export function deliverWork() {
  if (handOver === null) return false;
  const settle = handOver;
  handOver = null;
  settle();
  startNext();
  return true;
}
