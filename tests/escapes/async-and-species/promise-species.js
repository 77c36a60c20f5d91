// Tries: Promise species, so that promises which the prelude derives are made by our constructor and hand us their
// resolvers.
// Origin: vm2 CVE-2026-47210 (promise species); own idea for the prelude.
// control: naive prelude

const seen = [];
const Native = Promise;
function Trap(executor) {
  return new Native((resolve, reject) => executor((value) => (seen.push(value), resolve(value)), reject));
}
Object.defineProperty(Promise, Symbol.species, { configurable: true, get: () => Trap });
Object.defineProperty(Promise.prototype, "constructor", { configurable: true, value: { [Symbol.species]: Trap } });
Promise.prototype.then = new Proxy(Promise.prototype.then, {
  apply: (target, self, args) => Reflect.apply(target, self, args.map((f) => typeof f === "function" ? (v) => (seen.push(v), f(v)) : f)),
});
await tools.add(1, 2);
await tools.add(3, 4);
return JSON.stringify(seen);
