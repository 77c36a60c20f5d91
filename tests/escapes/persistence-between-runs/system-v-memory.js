// Tries: a segment of System V shared memory, which stays when its maker is gone.
// Origin: S16; IPC objects outlive processes.

const id = native.call("shmget", input.shm, 4096, 0o1666);
const where = native.call("shmat", id, 0, 0);
if (input.round === 1) {
  for (const [at, byte] of new TextEncoder().encode(input.plant).entries()) {
    new DataView(Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(BigInt(where)), 4096)).setUint8(at, byte);
  }
  return null;
}
return [id, where, where > 0 ? native.at(where).getCString() : null];
