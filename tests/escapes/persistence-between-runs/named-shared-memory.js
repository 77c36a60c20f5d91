// Tries: a file in the memory that all processes of a machine share.
// Origin: S16; POSIX shared memory.

const place = `/dev/shm/${input.name}`;
if (input.round === 1) Deno.writeTextFileSync(place, input.plant);
return input.round === 2 ? Deno.readTextFileSync(place) : null;
