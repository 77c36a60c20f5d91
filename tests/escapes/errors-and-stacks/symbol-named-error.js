// Tries: the error that the platform itself makes when it can't format one whose name is a symbol.
// Origin: vm2's list of attacks (errors made by the host while it prepares a stack).

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

const odd = [Symbol("name"), { toString: () => { throw odd; } }, new Proxy(() => {}, {}), 1n];
for (const name of odd) {
  for (const field of ["name", "message", "cause"]) {
    const error = new Error("x");
    Object.defineProperty(error, field, { value: name });
    try {
      console.log(error);
      dig(error.stack);
      structuredClone(error);
      await tools.echo({ value: error });
    } catch (caught) {
      dig(caught);
      try {
        dig(caught.stack);
      } catch (inner) {
        dig(inner);
      }
    }
  }
}
return found;
