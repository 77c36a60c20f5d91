// Tries: a timer, an interval and a promise that go on after the run that made them, with its secret in their closure.
// Origin: S16; serverless functions that go on after their answer.

if (input.round === 1) {
  const secret = input.plant;
  const say = () => globalThis.emit(secret);
  setInterval(say, 1);
  setTimeout(say, 5);
  (async () => {
    for (let turn = 0; turn < 1000; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      say();
    }
  })();
  return null;
}
await new Promise((resolve) => setTimeout(resolve, 50));
return "end";
