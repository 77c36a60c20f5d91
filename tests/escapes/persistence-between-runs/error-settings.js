// Tries: a formatter of stack traces that one run leaves with Error, asked by an error of the next.
// Origin: S16; Error.prepareStackTrace belongs to everybody.

if (input.round === 1) Error.prepareStackTrace = () => input.plant;
return input.round === 2 ? [new Error("mine").stack, String(Error.prepareStackTrace)] : null;
