// Tries: a BPF map and program, code in the kernel.
// Origin: CVE-2021-3490, CVE-2022-23222.

const attributes = new Uint8Array(128);
new DataView(attributes.buffer).setUint32(0, 2, true);
new DataView(attributes.buffer).setUint32(4, 4, true);
new DataView(attributes.buffer).setUint32(8, 8, true);
new DataView(attributes.buffer).setUint32(12, 1, true);
return native.call("bpf", 0, attributes, 128);
