// Tries: chmod, rename, truncate, utime and removal of a file of the host.
// Origin: the rest of the file API.

const spare = `${input.directory}/canary.js`;
for (const change of [
  () => Deno.copyFileSync(spare, input.write),
  () => Deno.renameSync(spare, `${input.directory}/renamed`),
  () => Deno.truncateSync(input.json, 0),
  () => Deno.mkdirSync(`${input.directory}/made`),
  () => Deno.makeTempFileSync({ dir: input.directory }),
]) {
  try {
    change();
  } catch (error) {
    console.log(String(error));
  }
}
return 1;
