// Tries: the Cache API, which keeps answers on disk.
// Origin: S16; design.md §3: caches go.

const cache = await caches.open("planted");
const url = "http://planted.test/x";
if (input.round === 1) await cache.put(url, new Response(input.plant));
return input.round === 2 ? await (await cache.match(url))?.text() : null;
