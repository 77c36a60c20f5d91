// Tries: sockets by Node's modules: net, dgram, http2, tls.
// Origin: Deno CVE-2023-33966 (node:http asked for no permission).

const get = process.getBuiltinModule;
const found = [];
for (const start of [
  () => get("net").connect(input.tcp, "127.0.0.1"),
  () => get("dgram").createSocket("udp4").send("x", input.udp, "127.0.0.1"),
  () => get("http2").connect(`http://127.0.0.1:${input.tcp}`),
  () => get("http").get(`http://127.0.0.1:${input.tcp}`),
]) {
  try {
    start()?.on?.("error", () => {});
  } catch (error) {
    found.push(`${error}`);
  }
}
await new Promise((resolve) => setTimeout(resolve, 200));
return found;
