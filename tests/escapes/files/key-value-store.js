// Tries: a store of the platform's own that ends up as a file: Deno.openKv.
// Origin: own idea: storage APIs write files beside the file API.

const store = await Deno.openKv(input.write);
await store.set(["x"], "written");
store.close();
return 1;
