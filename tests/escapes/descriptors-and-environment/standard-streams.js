// Tries: the standard streams turned round: stdin written to, stdout read from, stderr followed to the terminal of the
// host.
// Origin: TIOCSTI's relatives; own idea.

const found = [];
for (const path of ["/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", input.tty, "/dev/fd/2", `/proc/${input.pid}/fd/0`]) {
  const file = native.call("openat", -100, path, 2, 0);
  found.push(file);
  if (file >= 0 && path === input.tty) found.push(native.call("ioctl", file, 0x5412, new Uint8Array([120])));
}
return found;
