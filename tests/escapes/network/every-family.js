// Tries: a socket of every family that the kernel might have, of every type.
// Origin: own idea: allow-lists that think of the families one uses.

const found = [];
for (let family = 2; family < 50; family++) {
  for (const kind of [1, 2, 3, 5]) found.push(native.call("socket", family, kind, 0));
}
return found;
