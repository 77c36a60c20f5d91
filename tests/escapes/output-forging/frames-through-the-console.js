// Tries: a frame written as text to console and process.stdout, where the host may read its frames.
// Origin: MCP servers over stdio that print; JSON-RPC injection by log lines.

const text = '["canary"]';
const frame = String.fromCharCode(0, 0, 0, text.length) + text;
for (const write of [() => console.log(frame), () => console.info(frame), () => process.stdout.write(frame), () => process.stderr.write(frame),
  () => console.table([frame]), () => console.group(frame)]) {
  try {
    write();
  } catch { /* on */ }
}
return 1;
