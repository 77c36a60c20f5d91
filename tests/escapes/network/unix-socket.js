// Tries: a UNIX socket of the host by its path, as a container would find Docker's.
// Origin: docker.sock escapes.

const connection = await Deno.connect({ transport: "unix", path: input.unix });
await connection.write(new TextEncoder().encode("x"));
return 1;
