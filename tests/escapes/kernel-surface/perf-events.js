// Tries: a performance counter, a clock without rounding and a bug-rich call.
// Origin: CVE-2013-2094, CVE-2023-5717.

const attributes = new Uint8Array(128);
const view = new DataView(attributes.buffer);
view.setUint32(0, 1, true);
view.setUint32(4, 128, true);
return native.call("perf_event_open", attributes, 0, -1, -1, 0);
