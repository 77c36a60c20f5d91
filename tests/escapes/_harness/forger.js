// A worker that was taken over: it says ready like an honest one, takes the start frame, and then sends what the test told it
// to: {head, unit, times, tail} as base64, then it does what `then` says: read (and throw away), hang, exit, or flood.

const bytes = (text) => Uint8Array.fromBase64(text ?? "");

function write(data) {
  let sent = 0;
  while (sent < data.length) sent += Deno.stdout.writeSync(data.subarray(sent));
}

function frame(text) {
  const payload = new TextEncoder().encode(text);
  const out = new Uint8Array(payload.length + 4);
  new DataView(out.buffer).setUint32(0, payload.length);
  out.set(payload, 4);
  return out;
}

function fill(buffer) {
  let done = 0;
  while (done < buffer.length) {
    const size = Deno.stdin.readSync(buffer.subarray(done));
    if (size === null) Deno.exit(0);
    done += size;
  }
  return buffer;
}

write(frame('["ready",1,"forger"]'));
const length = new DataView(fill(new Uint8Array(4)).buffer).getUint32(0);
const plan = JSON.parse(new TextDecoder().decode(fill(new Uint8Array(length))))[2].input;

write(bytes(plan.head));
const unit = bytes(plan.unit);
const batch = Math.max(1, Math.floor(65536 / Math.max(1, unit.length)));
const block = new Uint8Array(unit.length * batch);
for (let at = 0; at < batch; at++) block.set(unit, at * unit.length);
for (let left = plan.times ?? 0; left > 0; left -= batch) write(block.subarray(0, Math.min(left, batch) * unit.length));
const tail = bytes(plan.tail);
if (plan.trickle) for (let at = 0; at < tail.length; at++) write(tail.subarray(at, at + 1));
else write(tail);
if (plan.then === "exit") Deno.exit(7);
if (plan.then === "hang") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
while (plan.then === "flood") write(block);
for (const waste = new Uint8Array(65536); Deno.stdin.readSync(waste) !== null;);
