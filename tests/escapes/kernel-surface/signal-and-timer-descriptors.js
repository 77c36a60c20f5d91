// Tries: signalfd and timerfd, calls that an engine does not need.
// Origin: allow-lists against the calls that nobody thought of.

return [native.call("signalfd4", -1, new BigUint64Array([0n]), 8, 0), native.call("timerfd_create", 1, 0)];
