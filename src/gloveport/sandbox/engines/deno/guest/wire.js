// Frames over standard input and output: a four-byte length, then JSON text. Reading blocks the whole guest. Nothing runs
// between two events, so a run is a function of its events.

import { decodeText, encodeInto, exit, readSync, writeSync } from "./engine.js";
import {
  ArrayBuffer_,
  copyWithin,
  max,
  parseJson,
  RangeError_,
  setBytes,
  stringIncludes,
  Uint8Array_,
  view,
} from "./primordials.js";
import { decode } from "./values.js";

const HEADER = 4;
const FLUSH_BYTES = 1024 * 1024; // queued frames count as the program's memory

/** The error for a message above the limit. */
export class TooLarge extends RangeError_ {}

let inputBuffer = new ArrayBuffer_(65536);
let input = new Uint8Array_(inputBuffer);
let inputSize = 65536;
let inputStart = 0;
let inputEnd = 0;

let outputBuffer = new ArrayBuffer_(65536);
let output = new Uint8Array_(outputBuffer);
let outputSize = 65536;
let outputEnd = 0;

let maxFrame = 16 * 1024 * 1024;

export function setMaxFrame(bytes) {
  maxFrame = bytes;
}

function need(count) {
  if (inputEnd - inputStart >= count) return;
  if (inputStart + count > inputSize) {
    if (count > inputSize) {
      inputSize = max(count, inputSize * 2);
      const grown = new ArrayBuffer_(inputSize);
      const bytes = new Uint8Array_(grown);
      setBytes(bytes, view(inputBuffer, inputStart, inputEnd));
      inputBuffer = grown;
      input = bytes;
    } else {
      copyWithin(input, 0, inputStart, inputEnd);
    }
    inputEnd -= inputStart;
    inputStart = 0;
  }
  while (inputEnd - inputStart < count) {
    const read = readSync(0, inputEnd === 0 ? input : view(inputBuffer, inputEnd, inputSize));
    if (read === null || read === 0) exit(0);
    inputEnd += read;
  }
}

/** Returns the next frame from the host. Blocks. */
export function readFrame() {
  need(HEADER);
  const length = input[inputStart] * 0x1000000 + (input[inputStart + 1] << 16) + (input[inputStart + 2] << 8) +
    input[inputStart + 3];
  inputStart += HEADER;
  need(length);
  const text = decodeText(view(inputBuffer, inputStart, inputStart + length));
  inputStart += length;
  if (inputStart === inputEnd) inputStart = inputEnd = 0;
  const frame = parseJson(text);
  return stringIncludes(text, '"$') ? decode(frame) : frame;
}

/** Queues a frame, given as JSON text, for the next flush. Throws TooLarge for one above the limit. */
export function send(text) {
  if (outputEnd > FLUSH_BYTES) flush();
  const most = text.length * 3 + HEADER;
  if (outputEnd + most > outputSize) {
    outputSize = max(outputEnd + most, outputSize * 2);
    const grown = new ArrayBuffer_(outputSize);
    const bytes = new Uint8Array_(grown);
    setBytes(bytes, view(outputBuffer, 0, outputEnd));
    outputBuffer = grown;
    output = bytes;
  }
  const written = encodeInto(text, view(outputBuffer, outputEnd + HEADER, outputSize)).written;
  if (written > maxFrame) throw new TooLarge(`${written} bytes are over the limit of ${maxFrame} for one message`);
  output[outputEnd] = written >>> 24;
  output[outputEnd + 1] = written >>> 16;
  output[outputEnd + 2] = written >>> 8;
  output[outputEnd + 3] = written;
  outputEnd += HEADER + written;
}

/** Writes the queued frames at once. */
export function flush() {
  let sent = 0;
  while (sent < outputEnd) sent += writeSync(1, view(outputBuffer, sent, outputEnd));
  outputEnd = 0;
}

/** Returns whether frames are queued. */
export function hasQueued() {
  return outputEnd > 0;
}

/** Drops the queued frames. */
export function discard() {
  outputEnd = 0;
}
