// Says that it is there, then gives back what it is sent.
const buffer = new Uint8Array(65536);
Deno.stdout.writeSync(new TextEncoder().encode("ready\n"));
for (let n; (n = Deno.stdin.readSync(buffer)) !== null;) Deno.stdout.writeSync(buffer.subarray(0, n));
