// Tries: the processor time of another process, to the nanosecond: what it does with a secret shows in it.
// Origin: own idea: a clock's number can be made of any process's, and no permission is asked for.

const found = [];
for (const kind of [0, 1, 2]) {
  const spot = new BigInt64Array(2);
  native.call("clock_gettime", (~input.pid << 3) | kind, spot);
  found.push(String(spot[0] * 1000000000n + spot[1]));
}
return found;
