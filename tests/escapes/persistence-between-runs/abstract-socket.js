// Tries: a word as the name of an abstract socket, which the next run reads from the list of sockets.
// Origin: S16; names of sockets that lie in no file system.

if (input.round === 1) {
  const address = new Uint8Array([1, 0, 0, ...new TextEncoder().encode(input.plant)]);
  const made = native.call("socket", 1, 1, 0);
  return native.call("bind", made, address, address.length) && null;
}
return Deno.readTextFileSync("/proc/net/unix").split("\n").filter((line) => line.includes(" @"));
