// Tries: a port of its own, at which the program waits for whoever comes.
// Origin: bind shells.

const found = [];
for (const listen of [
  () => Deno.listen({ hostname: "127.0.0.1", port: 0 }),
  () => Deno.serve({ port: 0 }, () => new Response("here")),
  () => native.call("bind", native.call("socket", 2, 1, 0), new Uint8Array([2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), 16),
]) {
  try {
    found.push(String(listen()));
  } catch (error) {
    found.push(String(error));
  }
}
return found;
