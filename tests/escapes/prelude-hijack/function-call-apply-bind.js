// Tries: Function.prototype.call, apply and bind replaced, to see receivers and arguments of the prelude's calls.
// Origin: own idea; the reason for Node's uncurryThis.

const seen = [];
const reflect = Reflect.apply;
for (const name of ["call", "apply", "bind"]) {
  const original = Function.prototype[name];
  Function.prototype[name] = function (self, ...args) {
    seen.push(self, ...args);
    return reflect(original, this, [self, ...args]);
  };
}
await tools.add(1, 2);
const found = [];
for (const item of seen) {
  try {
    found.push(item.Deno.args, JSON.stringify(item.frame));
  } catch { /* on */ }
}
return found;
