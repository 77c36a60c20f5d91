// Tries: a TCP connection to the host.
// Origin: the plain one.

const connection = await Deno.connect({ hostname: "127.0.0.1", port: input.tcp });
await connection.write(new TextEncoder().encode("GET / HTTP/1.0\r\n\r\n"));
return 1;
