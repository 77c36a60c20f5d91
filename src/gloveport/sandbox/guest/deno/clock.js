// The guest's clock: set by each event, standing still between events, one microsecond further with each reading. Every way
// to read the time is led here: Date, Intl.DateTimeFormat, Temporal.Now, performance.

import {
  apply,
  construct,
  Date_,
  dateToString,
  defineProperty,
  floor,
  freeze,
  getOwnPropertyDescriptor,
  setPrototypeOf,
} from "./primordials.js";

let now = 0; // microseconds since the epoch
let origin = 0;

/** Moves the clock to an event's time; it never goes back. */
export function advanceTo(time) {
  if (time > now) now = time;
}

export function startClock(time) {
  now = origin = time;
}

/** The time of the current event in microseconds, without a reading. */
export function currentTime() {
  return now;
}

/** A reading in microseconds since the epoch. */
function readMicros() {
  return now++;
}

function readMillis() {
  return floor(readMicros() / 1000);
}

function hide(target, name, value) {
  defineProperty(target, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

function makeDate() {
  function Date(...parts) {
    if (new.target === undefined) return dateToString(new Date_(readMillis()));
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

// format() with no date means now, and asks the engine's own clock unless a date is put in.
function patchIntl() {
  const prototype = Intl.DateTimeFormat.prototype;
  const readFormat = getOwnPropertyDescriptor(prototype, "format").get;
  const formats = new WeakMap();
  const { get, set, has } = WeakMap.prototype;
  defineProperty(prototype, "format", {
    __proto__: null,
    configurable: true,
    enumerable: false,
    get: function format() {
      if (!apply(has, formats, [this])) {
        const original = apply(readFormat, this, []);
        apply(set, formats, [this, (date) => original(date === undefined ? readMillis() : date)]);
      }
      return apply(get, formats, [this]);
    },
  });
  const { formatToParts } = prototype;
  hide(prototype, "formatToParts", function (date) {
    return apply(formatToParts, this, [date === undefined ? readMillis() : date]);
  });
}

function makeTemporal(Temporal) {
  if (Temporal === undefined) return;
  const { Instant } = Temporal;
  const fromMillis = Instant.fromEpochMilliseconds.bind(Instant);
  const { toZonedDateTimeISO } = Instant.prototype;
  const { toPlainDateTime, toPlainDate, toPlainTime } = Temporal.ZonedDateTime.prototype;
  const zoned = (zone = "UTC") => apply(toZonedDateTimeISO, fromMillis(readMillis()), [zone]);
  const Now = {
    timeZoneId: () => "UTC",
    instant: () => fromMillis(readMillis()),
    zonedDateTimeISO: (zone) => zoned(zone),
    plainDateTimeISO: (zone) => apply(toPlainDateTime, zoned(zone), []),
    plainDateISO: (zone) => apply(toPlainDate, zoned(zone), []),
    plainTimeISO: (zone) => apply(toPlainTime, zoned(zone), []),
  };
  hide(Temporal, "Now", freeze(Now));
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

/** Puts the clock behind every way to read the time; gives the globals that replace the platform's. */
export function installClock() {
  patchIntl();
  makeTemporal(globalThis.Temporal);
  return { Date: makeDate(), performance: freeze(performance_) };
}
