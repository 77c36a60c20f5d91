// Tries: a file of the host, by every synchronous and asynchronous call of the platform.
// Origin: the plain one.

const found = [];
for (const read of [
  () => Deno.readTextFileSync(input.file),
  () => Deno.readTextFile(input.file),
  async () => await new Response((await Deno.open(input.file)).readable).text(),
  async () => await (await fetch(`file://${input.file}`)).text(),
  () => new XMLHttpRequest(),
]) {
  try {
    found.push(await read());
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
