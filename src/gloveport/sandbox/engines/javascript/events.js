// The host's events in order, also around a synchronous answer.

import { create } from "./primordials.js";
import { readFrame } from "./wire.js";

// Frames that arrived while the guest waited for the answer to a synchronous call. They are delivered afterwards in order.
const held = create(null);
let heldFirst = 0;
let heldNext = 0;

/** Returns the next event in the order of the host's stream. Blocks. */
export function nextEvent() {
  if (heldFirst === heldNext) return readFrame();
  const frame = held[heldFirst];
  delete held[heldFirst++];
  return frame;
}

/** Returns the reply to the synchronous call `id`. Events before it are queued for nextEvent. Blocks. */
export function replyTo(id) {
  for (;;) {
    const frame = readFrame();
    if (frame[0] === "reply" && frame[2] === id) return frame;
    held[heldNext++] = frame;
  }
}
