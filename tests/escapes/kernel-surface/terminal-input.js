// Tries: TIOCSTI: input pushed into a terminal of the host.
// Origin: CVE-2017-5226 (bubblewrap), CVE-2023-1523 (snap).

const file = native.call("openat", -100, input.tty, 2, 0);
const found = [file];
for (const command of [0x5412, 0x541C]) for (const target of [file, 0, 1, 2]) found.push(native.call("ioctl", target, command, new Uint8Array([120, 0, 0, 0])));
return found;
