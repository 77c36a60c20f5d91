// Tries: bytes straight to descriptors 0 to 9 by whatever the platform still has for it.
// Origin: own idea: programs that share stdout with a protocol.

const text = '["canary"]';
const frame = new TextEncoder().encode("\0\0\0" + String.fromCharCode(text.length) + text);
for (let fd = 0; fd < 10; fd++) {
  for (const write of [
    () => process.getBuiltinModule("fs").writeSync(fd, frame),
    () => process.binding("fs").writeBuffer(fd, frame, 0, frame.length),
    () => Deno.stdout.writeSync(frame),
    () => process._rawDebug(text),
  ]) {
    try {
      write();
    } catch { /* on */ }
  }
}
return 1;
