// The host's events in their order, also around a synchronous answer.

import { create } from "./primordials.js";
import { readFrame } from "./wire.js";

// Frames that arrived while the guest waited for the answer to a synchronous call; delivered afterwards in their order.
const held = create(null);
let heldFirst = 0;
let heldNext = 0;

/** The next event in the order of the host's stream. Blocks. */
export function nextEvent() {
  if (heldFirst === heldNext) return readFrame();
  const frame = held[heldFirst];
  delete held[heldFirst++];
  return frame;
}

/** The reply to the synchronous call `id`; events that come before it are held back for nextEvent. Blocks. */
export function replyTo(id) {
  for (;;) {
    const frame = readFrame();
    if (frame[0] === "reply" && frame[2] === id) return frame;
    held[heldNext++] = frame;
  }
}
