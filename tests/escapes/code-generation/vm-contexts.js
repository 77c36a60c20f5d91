// Tries: node:vm and ShadowRealm: compile text in this realm or in a new one, where nothing was taken apart.
// Origin: vm2 itself; Node's `vm` is not a sandbox.

const found = [];
const vm = process.getBuiltinModule?.("vm");
for (const run of [
  () => vm.runInThisContext("[Deno.args, Deno.readTextFileSync(input.file)]"),
  () => vm.runInNewContext("o.constructor.constructor('return Deno')().args", { o: {} }),
  () => vm.compileFunction("return [Deno.args, Deno.readTextFileSync(input.file)]")(),
  () => new ShadowRealm().evaluate("Deno.args"),
]) {
  try {
    found.push(run());
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
