// Frames of JSON text. The Python around the engine cuts and joins them; reading blocks the whole guest: between two events
// nothing of it moves, which is what makes a run a function of its events.

import { flushTexts, readText, sendText } from "./engine.js";
import { parseJson, RangeError_, stringIncludes, stringSlice } from "./primordials.js";
import { decode } from "./values.js";

/** Says that a message is over the limit. */
export class TooLarge extends RangeError_ {}

let maxFrame = 16 * 1024 * 1024;

export function setMaxFrame(bytes) {
  maxFrame = bytes;
}

/** The next frame from the host. Blocks. */
export function readFrame() {
  const text = readText();
  const frame = parseJson(text);
  return stringIncludes(text, '"$') ? decode(frame) : frame;
}

/** Adds a frame, given as JSON text, to what the next flush sends. Over-large ones throw TooLarge. */
export function send(text) {
  const size = text.length > maxFrame ? text.length : sendText(stringSlice(text, 0), maxFrame); // whole: the binding takes no ropes
  if (size > maxFrame) throw new TooLarge(`${size} bytes are over the limit of ${maxFrame} for one message`);
}

/** Writes what was added since the last flush, in one go. */
export function flush() {
  flushTexts();
}
