// Tries: an accessor for `constructor` on promises, which `await` reads from inside the prelude with its own promises
// as receivers.
// Origin: own idea: PromiseResolve reads `constructor` of every awaited promise.
// control: naive prelude

const seen = [];
const original = Promise.prototype.constructor;
Object.defineProperty(Promise.prototype, "constructor", {
  configurable: true,
  get() {
    seen.push(this);
    return original;
  },
});
await tools.add(1, 2);
await tools.echo({ value: 2 });
if (typeof crypto !== "undefined") await crypto.subtle.digest("SHA-256", new Uint8Array(8));
delete Promise.prototype.constructor;
Promise.prototype.constructor = original;
const soon = () => new Promise((resolve) => setTimeout(resolve, 5, null));
const values = await Promise.all(seen.slice(0, 100).map((promise) => Promise.race([promise.catch(String), soon()])));
return JSON.stringify(values);
