// Tries: Promise.prototype.then replaced, to see every value that the prelude waits for and to call its handlers.
// Origin: vm2 CVE-2023-37466 (promise handlers).
// control: naive prelude

const seen = [];
const then = Promise.prototype.then;
Promise.prototype.then = function (done, failed) {
  return then.call(this, (value) => {
    seen.push(value, done);
    return done ? done(value) : value;
  }, failed);
};
await null;
await tools.add(1, 2);
await tools.echo({ value: 1 });
Promise.prototype.then = then;
return JSON.stringify(seen);
