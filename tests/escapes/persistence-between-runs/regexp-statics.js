// Tries: what the last match of a regular expression left behind for everybody to read.
// Origin: S16; the legacy static properties of RegExp.

if (input.round === 1) {
  const last = new RegExp(`(${input.plant})`);
  setInterval(() => last.test(input.plant), 0);
  last.test(input.plant);
  return null;
}
await new Promise((resolve) => setTimeout(resolve, 20));
return [RegExp.$1, RegExp.lastMatch, RegExp.input, RegExp["$`"], RegExp["$'"]];
