// Tries: Function by way of bind, Reflect.construct with another target, and a derived class.
// Origin: checks by identity of Function; isolated-vm and Realms discussions.

const found = [];
class Derived extends Function {}
for (const make of [
  () => Function.bind(null, "return [Deno.args, Deno.readTextFileSync(input.file)]")(),
  () => Reflect.construct(Function, ["return [Deno.args, Deno.readTextFileSync(input.file)]"], Array),
  () => new Derived("return [Deno.args, Deno.readTextFileSync(input.file)]"),
  () => Function.apply.call(Function, null, ["return [Deno.args, Deno.readTextFileSync(input.file)]"]),
  () => Object.getOwnPropertyDescriptor(Function.prototype, "constructor").value("return [Deno.args, Deno.readTextFileSync(input.file)]"),
]) {
  try {
    found.push(make()());
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
