// Tries: errors that hold other errors: SuppressedError of `using`, AggregateError of Promise.any, causes of platform
// errors.
// Origin: vm2 CVE-2023-30547 (errors that are not sanitised), with newer kinds of error.

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

const caught = [];
try {
  using first = { [Symbol.dispose]() { null.x; } };
  structuredClone(() => {});
} catch (error) {
  caught.push(error, error.error, error.suppressed);
}
try {
  await Promise.any([tools.fail({}), Promise.reject(new Error("x"))]);
} catch (error) {
  caught.push(error, ...error.errors);
}
const stack = new DisposableStack();
stack.defer(() => new URL("no"));
try {
  stack.dispose();
} catch (error) {
  caught.push(error, error.cause);
}
for (const error of caught) {
  dig(error);
  dig(error?.constructor);
}
return found;
