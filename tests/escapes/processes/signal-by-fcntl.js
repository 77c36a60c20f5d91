// Tries: SIGKILL as the signal that says a descriptor is ready, with a process of the host as its owner: F_SETOWN,
// F_SETSIG, O_ASYNC.
// Origin: own idea; seccomp.py names it.

const pair = new Int32Array(2);
const found = [native.call("socketpair", 1, 1, 0, pair)];
found.push(native.call("fcntl", pair[0], 8, input.pid), native.call("fcntl", pair[0], 10, 9), native.call("fcntl", pair[0], 4, 0o20000 | 0o4000));
found.push(native.call("write", pair[1], new Uint8Array(1), 1));
await new Promise((resolve) => setTimeout(resolve, 50));
return found;
