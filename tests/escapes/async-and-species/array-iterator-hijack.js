// Tries: the array iterator's next, to see what the prelude iterates over and to feed it something else.
// Origin: prototype poisoning of %ArrayIteratorPrototype%, the reason for Node's primordials.
// control: naive prelude

const seen = [];
const prototype = Object.getPrototypeOf([][Symbol.iterator]());
const next = prototype.next;
prototype.next = function () {
  const step = next.call(this);
  if (!step.done) seen.push(step.value);
  return step;
};
try {
  await tools.add(1, 2);
  await tools.fail({}).catch(() => {});
} finally {
  prototype.next = next;
}
return seen.map((item) => typeof item === "object" ? JSON.stringify(item) : String(item)).join();
