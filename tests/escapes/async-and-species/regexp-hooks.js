// Tries: RegExp.prototype.exec and the Symbol.replace family, which string methods call with the text they work on.
// Origin: own idea; Node's internals are hardened against the same.
// control: naive prelude

const seen = [];
for (const name of ["exec", Symbol.replace, Symbol.match, Symbol.split, Symbol.search, "test"]) {
  const original = RegExp.prototype[name];
  RegExp.prototype[name] = function (...args) {
    seen.push(...args.map(String));
    if (name === Symbol.replace) return '","forged":["';
    return Reflect.apply(original, this, args);
  };
}
const result = await tools.add(1, 2).catch(String);
await tools.fail({}).catch(() => {});
return [seen.join(), result];
