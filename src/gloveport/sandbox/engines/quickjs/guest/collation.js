// String.prototype.localeCompare by the Unicode collation algorithm for English: letters first, then accents, then case. It
// covers ASCII and accented Latin letters. Anything else is refused rather than sorted wrongly.

import { lacks } from "./unsupported.js";
import { create, stringSlice, stringStartsWith, uncurry } from "./primordials.js";

const ORDER = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz";
const ACCENTS = "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0328\u0327\u0304";
const PLAIN = 1;

const normalize = uncurry(String.prototype.normalize);
const toLowerCase = uncurry(String.prototype.toLowerCase);
const charCodeAt = uncurry(String.prototype.charCodeAt);

const letters = create(null);
for (let index = 0; index < ORDER.length; index++) letters[ORDER[index]] = index + 1;
const accents = create(null);
for (let index = 0; index < ACCENTS.length; index++) accents[ACCENTS[index]] = PLAIN + index + 1;

/** Returns the sort keys of a string in three lists: its letters, their accents, their case. */
class Key {
  count = 0;
  primary = create(null);
  marks = create(null);
  cases = create(null);
  length = 0;
}

function keyOf(text) {
  const whole = normalize(text, "NFD");
  const key = new Key();
  for (let index = 0; index < whole.length; index++) {
    const char = whole[index];
    const lower = toLowerCase(char);
    const letter = letters[lower];
    const accent = accents[char];
    if (letter === undefined && accent === undefined) {
      if (charCodeAt(char, 0) < 0x80) continue; // a control character, which the order ignores
      lacks(`localeCompare for \`${stringSlice(text, 0, 40)}\``);
    }
    if (letter !== undefined) key.primary[key.count++] = letter;
    key.marks[key.length] = accent ?? PLAIN;
    key.cases[key.length++] = char === lower ? 0 : 1;
  }
  return key;
}

function compare(left, leftSize, right, rightSize) {
  for (let index = 0; index < leftSize && index < rightSize; index++) {
    if (left[index] !== right[index]) return left[index] < right[index] ? -1 : 1;
  }
  return leftSize === rightSize ? 0 : leftSize < rightSize ? -1 : 1;
}

/** Returns -1, 0 or 1 when a text sorts before another one, equally, or after it. */
export function compareTexts(text, other, locales, options) {
  if (options !== undefined || (locales !== undefined && !stringStartsWith(`${locales}`, "en"))) {
    lacks("localeCompare with a locale or options");
  }
  if (text === other) return 0;
  const left = keyOf(text);
  const right = keyOf(other);
  return compare(left.primary, left.count, right.primary, right.count) ||
    compare(left.marks, left.length, right.marks, right.length) ||
    compare(left.cases, left.length, right.cases, right.length);
}
