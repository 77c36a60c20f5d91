// Tries: text that is half of a surrogate pair in results, logs, names and errors: valid in JavaScript, not in JSON
// for others.
// Origin: own idea: slicing text with emoji in it makes these every day.

const half = "\u{1F600}".slice(0, 1);
console.info?.(half, [half]);
emit({ [half]: half });
emit([half]);
await tools.echo({ value: half }).catch(() => {});
return { [half]: [half, new Error(half), new Map([[half, half]])].map(String), value: half };
