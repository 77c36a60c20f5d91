// Tries: native code by way of process.dlopen, Deno.dlopen and the Node-API operation, on a library that every jail
// needs.
// Origin: native modules that ask nobody; own idea.

const found = [];
for (const load of [
  () => Deno.dlopen("libc.so.6", { getenv: { parameters: ["buffer"], result: "pointer" } }),
  () => ({ symbols: process.dlopen({ exports: {} }, "libc.so.6") }),
  () => ({ symbols: Deno[Deno.internal].core.ops.op_napi_open("libc.so.6") }),
]) {
  try {
    const { symbols } = load();
    const value = symbols.getenv(new TextEncoder().encode(input.env + "\0"));
    found.push(Deno.UnsafePointerView.getCString(value));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
