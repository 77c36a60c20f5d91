// Tries: proxies that are thrown and returned, whose traps throw functions at whoever looks what they are.
// Origin: vm2 issues 174 and 225 (exceptions thrown while an exception is wrapped).

const found = [];
function dig(value, depth = 0) {
  if (value === null || !["object", "function"].includes(typeof value) || depth > 4) return;
  try {
    const platform = value.Deno ?? value.constructor.constructor("return Deno")();
    found.push(platform.args, platform.readTextFileSync(input.file));
  } catch { /* on */ }
  for (const name of Reflect.ownKeys(value)) {
    try {
      const own = Object.getOwnPropertyDescriptor(value, name);
      if (typeof own.value === "string") found.push(own.value);
      dig(own.value, depth + 1);
    } catch { /* on */ }
  }
}

const trap = (...args) => {
  args.forEach((arg) => dig(arg));
  throw (given) => given.constructor.constructor("return Deno")();
};
const names = ["getPrototypeOf", "getOwnPropertyDescriptor", "ownKeys", "get", "has"];
for (const name of names) {
  const bad = new Proxy(function () {}, { [name]: trap });
  const attempts = [() => tools.echo({ value: bad }), () => tools.echo(bad), () => emit(bad), () => console.log(bad)];
  for (const attempt of [...attempts, () => structuredClone(bad), () => new Error("x", { cause: bad })]) {
    try {
      await attempt();
    } catch (error) {
      dig(error);
      try {
        dig(error(() => {}));
      } catch (inner) {
        dig(inner);
      }
    }
  }
}
return found;
