// Tries: the environment of the C library, which is not that of the language, set by one run and read by the next.
// Origin: S16; state below the language.

const libc = Deno.dlopen("libc.so.6", {
  setenv: { parameters: ["buffer", "buffer", "i32"], result: "i32" },
  getenv: { parameters: ["buffer"], result: "pointer" },
});
const text = (word) => new TextEncoder().encode(word + "\0");
if (input.round === 1) return libc.symbols.setenv(text("PLANTED"), text(input.plant), 1) && null;
const found = libc.symbols.getenv(text("PLANTED"));
return found && Deno.UnsafePointerView.getCString(found);
