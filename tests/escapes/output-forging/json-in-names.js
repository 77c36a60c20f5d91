// Tries: quotes, brackets and line ends in tool names, keys, levels and messages, to break out of the JSON that is
// written by hand.
// Origin: JSON injection by concatenation.

const poison = '",[]],["canary"],["';
for (const name of [poison, "\u2028", "\0", "a.b'`${1}"]) {
  await tools[name]?.({ [name]: name, ["$" + name]: name }).catch(() => {});
}
emit({ [poison]: [poison], $: "date", v: poison, ["$$"]: 1 });
emit(poison);
const error = new Error(poison);
error.name = poison;
error[poison] = poison;
return [error, new Map([[poison, poison]]), new Set([poison])].map(String);
