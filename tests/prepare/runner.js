// Imports each prepared module, calls its default export if it is a function, and prints what came out, one JSON line each.
const [folder] = Deno.args;
const names = [...Deno.readDirSync(folder)].map((entry) => entry.name).filter((name) => /\.[tj]s$/.test(name)).sort();
const tools = { add: (a, b) => a + b, name: "tools" };
globalThis.tools = tools;
for (const name of names) {
  let line;
  try {
    const type = name.endsWith(".ts") ? "text/typescript" : "text/javascript";
    const url = URL.createObjectURL(new Blob([Deno.readTextFileSync(`${folder}/${name}`)], { type }));
    const module = await import(url);
    const value = typeof module.default === "function" ? await module.default(tools) : await module.default;
    line = { value: value === undefined ? "undefined" : value };
  } catch (error) {
    line = { error: String(error?.message ?? error), stack: String(error?.stack ?? "") };
  }
  console.log(JSON.stringify({ name, ...line }));
}
