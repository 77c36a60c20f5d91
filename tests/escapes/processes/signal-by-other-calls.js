// Tries: a signal by the calls that filters forget: pidfd_send_signal, rt_sigqueueinfo, tgkill.
// Origin: own idea; signals to the fork server or the host.

const found = [];
const info = new Int32Array(32);
info[0] = 9;
info[2] = -1;
found.push(native.call("rt_sigqueueinfo", input.pid, 9, info));
const file = native.call("pidfd_open", input.pid, 0);
found.push(file, native.call("pidfd_send_signal", file, 9, 0, 0), native.call("tgkill", input.pid, input.pid, 9));
await new Promise((resolve) => setTimeout(resolve, 50));
return found;
