// Tries: an error whose stack is an object with methods that get what the printer hands to a text's.
// Origin: vm2 issue 241 (the inspector calls startsWith and match of a stack).

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

const spy = new Proxy(function () {}, {
  get: (_, name) => name === Symbol.toPrimitive ? () => "spy" : (...args) => {
    args.forEach((arg) => dig(arg));
    dig(spy.caller);
    return name === "length" ? 5 : spy;
  },
  apply: (_, self, args) => {
    dig(self);
    args.forEach((arg) => dig(arg));
    return "spy";
  },
});
for (const prototype of [null, Error.prototype, TypeError.prototype]) {
  const bad = Object.setPrototypeOf(new Error("x"), prototype);
  Object.defineProperty(bad, "stack", { value: spy });
  try {
    console.log(bad);
    console.error([bad]);
    Promise.reject(bad).catch(() => {});
    dig(await tools.echo({ value: bad }).catch((error) => error));
  } catch (error) {
    dig(error);
  }
}
dig(spy.constructor);
return found;
