// Tries: a property of the global object, planted in one run and looked for in the next.
// Origin: S16; shared contexts of n8n's task runners.

if (input.round === 1) globalThis.planted = input.plant;
return input.round === 2 ? globalThis.planted : null;
