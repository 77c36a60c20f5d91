// Tries: a UDP datagram to the host.
// Origin: the plain one; DNS tunnels.

const socket = Deno.listenDatagram({ port: 0, transport: "udp", hostname: "127.0.0.1" });
await socket.send(new TextEncoder().encode("stolen"), { transport: "udp", hostname: "127.0.0.1", port: input.udp });
return 1;
