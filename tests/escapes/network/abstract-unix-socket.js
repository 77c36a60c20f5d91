// Tries: an abstract UNIX socket, which no file system guards, by a raw system call.
// Origin: CVE-2020-15257 (containerd's abstract socket).

const socket = native.call("socket", 1, 1, 0);
const name = new TextEncoder().encode(input.abstract);
const address = new Uint8Array(3 + name.length);
address[0] = 1;
address.set(name, 3);
return [socket, native.call("connect", socket, address, address.length)];
