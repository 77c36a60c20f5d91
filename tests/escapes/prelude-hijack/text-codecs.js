// Tries: TextEncoder and TextDecoder methods replaced, the last step before the bytes.
// Origin: own idea; Deno's ext/web uses primordials for the same reason.

const seen = [];
for (const [owner, name] of [[TextEncoder, "encode"], [TextEncoder, "encodeInto"], [TextDecoder, "decode"]]) {
  const original = owner.prototype[name];
  owner.prototype[name] = function (...args) {
    seen.push(...args.map(String));
    if (String(args[0]).startsWith('["call"')) args[0] = '["canary"]';
    return Reflect.apply(original, this, args);
  };
}
await tools.add(1, 2);
return seen.join("|");
