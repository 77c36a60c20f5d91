// Tries: locks on a file that all guests share, the engine or the loader: one run writes a secret as a pattern of locked
// bytes, another that runs beside it reads the pattern.
// Origin: covert channels between containers; own idea.

const paths = ["/engine/deno", "/lib64/ld-linux-x86-64.so.2", "/guest/plain.js", input.file];
const file = paths.map((path) => native.call("openat", -100, path, 0, 0)).find((opened) => opened >= 0);
const lock = (type, at) => {
  const view = new DataView(new ArrayBuffer(32));
  view.setInt16(0, type, true);
  view.setBigInt64(8, BigInt(at), true);
  view.setBigInt64(16, 1n, true);
  return view;
};
if (input.round === 1) {
  for (let at = 0; at < input.plant.length * 8; at++) {
    if (input.plant.charCodeAt(at >> 3) >> (at & 7) & 1) native.call("fcntl", file, 37, new Uint8Array(lock(0, at).buffer));
  }
  return null;
}
let text = "";
for (let place = 0; place < 28; place++) {
  let code = 0;
  for (let bit = 0; bit < 8; bit++) {
    const asked = new Uint8Array(lock(1, place * 8 + bit).buffer);
    if (native.call("fcntl", file, 36, asked) === 0 && asked[0] !== 2) code |= 1 << bit;
  }
  text += String.fromCharCode(code);
}
return text;
