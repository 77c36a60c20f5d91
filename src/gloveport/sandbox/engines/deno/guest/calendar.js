// Make Intl and Temporal use the guest's clock instead of the engine's.

import { readMillis } from "./clock.js";
import { apply, defineProperty, freeze, getOwnPropertyDescriptor } from "./primordials.js";

function hide(target, name, value) {
  defineProperty(target, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

/** Makes Intl.DateTimeFormat use the guest's clock: format() without a date means now. */
export function turnIntl() {
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

/** Makes Temporal.Now use the guest's clock. */
export function turnTemporal() {
  const { Temporal } = globalThis;
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
