// Tries: Symbol.hasInstance on Error and ToolError and another superclass for ToolError, both run inside the prelude's
// error path.
// Origin: own idea: `super()` looks up the prototype of the class each time.

const seen = [];
class Evil {
  constructor(...args) {
    seen.push(...args);
    return new Proxy(this, {
      set(target, name, value) {
        seen.push(name, value);
        target[name] = value;
        return true;
      },
      defineProperty(target, name, own) {
        seen.push(name, own.value);
        return Reflect.defineProperty(target, name, own);
      },
    });
  }
}
Object.setPrototypeOf(ToolError, Evil);
for (const owner of [Error, ToolError]) Object.defineProperty(owner, Symbol.hasInstance, { configurable: true, value: (value) => (seen.push(value), true) });
Object.defineProperty(Evil.prototype, "code", { configurable: true, get: () => "time-limit", set: (value) => seen.push(value) });
const error = await tools.fail({}).catch((thrown) => thrown);
seen.push(JSON.stringify(error));
throw Object.defineProperty(Object.create(Evil.prototype), "message", { value: seen.join() });
