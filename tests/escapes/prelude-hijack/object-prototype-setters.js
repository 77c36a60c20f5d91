// Tries: setters on Object.prototype for the names that a prelude gives to its own records: id, error, value, resolve,
// then and others.
// Origin: prototype pollution; vm2 CVE-2021-23449.

const seen = [];
const names = "id error resolve reject site name run due every args frame state callback type code data".split(" ");
for (const name of names) {
  if (name in Object.prototype) continue;
  Object.defineProperty(Object.prototype, name, {
    __proto__: null,
    configurable: true,
    get() {
      return undefined;
    },
    set(value) {
      seen.push([name, value]);
      Object.defineProperty(this, name, { __proto__: null, value, writable: true, configurable: true, enumerable: true });
    },
  });
}
const pending = tools.add(1, 2);
for (const name of names) delete Object.prototype[name];
await pending.catch(() => {});
for (const [name, value] of seen) if (name === "resolve") value("forged");
return JSON.stringify(seen);
