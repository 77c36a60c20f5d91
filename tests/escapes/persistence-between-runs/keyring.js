// Tries: a key in the keyring of the user, which every process of the user shares.
// Origin: S16; keyrings are in no namespace of their own.

if (input.round === 1) return native.call("add_key", "user", "planted", input.plant, input.plant.length, -4) && null;
const key = native.call("keyctl", 10, -4, "user", "planted", 0);
const bytes = new Uint8Array(64);
const size = native.call("keyctl", 11, key, bytes, 64);
native.call("keyctl", 9, key, -4);
return [key, size, native.text(bytes)];
