// Tries: a file by its handle, name_to_handle_at and open_by_handle_at, which walks no path at all.
// Origin: the shocker escape from Docker (2014).

const handle = new Uint8Array(136);
new DataView(handle.buffer).setUint32(0, 128, true);
const mount = new Uint8Array(4);
const found = [native.call("name_to_handle_at", -100, input.file, handle, mount, 0)];
const base = native.call("openat", -100, input.directory, 0x10000, 0);
const file = native.call("open_by_handle_at", base, handle, 0);
const bytes = new Uint8Array(200);
found.push(base, file, native.call("read", file, bytes, 200), native.text(bytes));
return found;
