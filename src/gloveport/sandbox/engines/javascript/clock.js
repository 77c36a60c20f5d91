// The guest's clock. Each event sets it, it stands still between events, and each reading advances it by a microsecond.
// Every way to read the time uses it.

import { dateText } from "./engine.js";
import { construct, Date_, defineProperty, floor, freeze, setPrototypeOf } from "./primordials.js";

let now = 0; // microseconds since the epoch
let origin = 0;

/** Moves the clock to the time of an event. It never goes back. */
export function advanceTo(time) {
  if (time > now) now = time;
}

export function startClock(time) {
  now = origin = time;
}

/** Starts the clock again at a later time. Durations do not show it. */
export function restartClock(time) {
  origin += time - now;
  now = time;
}

/** Returns the time of the current event in microseconds, without a reading. */
export function currentTime() {
  return now;
}

/** Reads the clock, in microseconds since the epoch. */
function readMicros() {
  return now++;
}

/** Reads the clock, in milliseconds since the epoch. */
export function readMillis() {
  return floor(readMicros() / 1000);
}

function hide(target, name, value) {
  defineProperty(target, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

function makeDate() {
  function Date(...parts) {
    if (new.target === undefined) return dateText(new Date_(readMillis()));
    return construct(Date_, parts.length === 0 ? [readMillis()] : parts, new.target);
  }
  Date.prototype = Date_.prototype;
  defineProperty(Date, "prototype", { __proto__: null, writable: false });
  defineProperty(Date, "length", { __proto__: null, value: 7 });
  hide(Date, "now", function now() {
    return readMillis();
  });
  hide(Date, "parse", Date_.parse);
  hide(Date, "UTC", Date_.UTC);
  hide(Date_.prototype, "constructor", Date);
  return Date;
}

const performance_ = setPrototypeOf({
  now: () => (readMicros() - origin) / 1000,
  get timeOrigin() {
    return origin / 1000;
  },
  mark: () => undefined,
  measure: () => undefined,
  clearMarks: () => undefined,
  clearMeasures: () => undefined,
  getEntries: () => [],
  toJSON: () => ({ timeOrigin: origin / 1000 }),
}, null);

/** Returns the globals that read the time, based on this clock. */
export function installClock() {
  return { Date: makeDate(), performance: freeze(performance_) };
}
