// Announces itself, then echoes its input.
const buffer = new Uint8Array(65536);
Deno.stdout.writeSync(new TextEncoder().encode("ready\n"));
for (let n; (n = Deno.stdin.readSync(buffer)) !== null;) Deno.stdout.writeSync(buffer.subarray(0, n));
