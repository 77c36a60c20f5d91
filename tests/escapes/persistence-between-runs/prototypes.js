// Tries: a property of every prototype.
// Origin: S16; prototype pollution that outlives a request.

if (input.round === 1) for (const { prototype } of [Object, Array, Function, Promise]) Object.defineProperty(prototype, "planted", { value: input.plant, configurable: true });
return input.round === 2 ? [{}.planted, [].planted, (() => {}).planted, Promise.resolve().planted] : null;
