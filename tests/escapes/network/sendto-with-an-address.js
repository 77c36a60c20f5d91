// Tries: sendto with an address on a socket that may be had, a pair of datagram sockets, aimed at the host's.
// Origin: own idea: allow-lists that look at socket() and forget sendto().

const pair = new Int32Array(2);
const found = [native.call("socketpair", 1, 2, 0, pair)];
const own = native.call("socket", 2, 2, 0);
const address = new Uint8Array([2, 0, input.udp >> 8, input.udp & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
for (const socket of [own, pair[0], 0, 1]) {
  if (socket >= 0) found.push(native.call("sendto", socket, new Uint8Array(4), 4, 0x40, address, 16));
}
return found;
