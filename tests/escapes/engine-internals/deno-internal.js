// Tries: Deno[Deno.internal]: the engine's core, its operations and whatever of it is left by other names.
// Origin: Deno's own warning on Deno[Deno.internal].

const found = [];
for (const name of ["Deno", "__bootstrap", "__deno", "core", "internals", "ext"]) {
  try {
    const place = globalThis[name];
    const { core } = place[place.internal] ?? place;
    const bytes = new Uint8Array(4096);
    const file = place.openSync(input.file);
    found.push(place.args, core.decode(bytes.subarray(0, core.readSync(file.rid ?? file[place.internal], bytes))));
  } catch (error) {
    found.push(`${error}`);
  }
  try {
    found.push(globalThis[name].args, globalThis[name].readTextFileSync(input.file), Object.keys(globalThis[name][globalThis[name].internal].core.ops));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
