// Frames of JSON text. The Python process around the engine splits and joins them. Reading blocks the whole guest. Nothing
// runs between two events, so a run is a function of its events.

import { flushTexts, readText, sendText } from "./engine.js";
import { parseJson, RangeError_, stringIncludes, stringSlice } from "./primordials.js";
import { decode } from "./values.js";

/** The error for a message above the limit. */
export class TooLarge extends RangeError_ {}

let maxFrame = 16 * 1024 * 1024;

export function setMaxFrame(bytes) {
  maxFrame = bytes;
}

/** Returns the next frame from the host. Blocks. */
export function readFrame() {
  const text = readText();
  const frame = parseJson(text);
  return stringIncludes(text, '"$') ? decode(frame) : frame;
}

/** Queues a frame, given as JSON text, for the next flush. Throws TooLarge for one above the limit. */
export function send(text) {
  const size = text.length > maxFrame ? text.length : sendText(stringSlice(text, 0), maxFrame); // flattened: the binding takes no ropes
  if (size > maxFrame) throw new TooLarge(`${size} bytes are over the limit of ${maxFrame} for one message`);
}

/** Writes the queued frames at once. */
export function flush() {
  flushTexts();
}
