// Tries: a byte of urgent data on the socket to the host, and on a pair of its own, sent and taken in odd orders.
// Origin: CVE-2025-38236, by which a renderer process got from its sandbox into the kernel.

const found = [];
for (let file = 0; file < 16; file++) found.push(native.call("sendto", file, "x", 1, 1, 0, 0));
const pair = new Int32Array(2);
found.push(native.call("socketpair", 1, 1, 0, pair));
for (const [send, take] of [[1, 1], [1, 0x40], [1, 0x43], [0x41, 0x41]]) {
  found.push(native.call("sendto", pair[0], "xy", 2, send, 0, 0));
  found.push(native.call("recvfrom", pair[1], new Uint8Array(8), 8, take, 0, 0));
}
return found;
