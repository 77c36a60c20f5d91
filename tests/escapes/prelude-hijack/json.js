// Tries: JSON.parse and JSON.stringify replaced, to read the host's frames and to write others.
// Origin: the first thing that anyone tries; Node's primordials.

const seen = [];
const { parse, stringify } = JSON;
JSON.parse = (text, ...rest) => {
  seen.push(text);
  return parse(text, ...rest);
};
JSON.stringify = (value, ...rest) => Array.isArray(value) && value[0] === "call" ? '["canary"]' : stringify(value, ...rest);
const result = await Promise.race([tools.add(1, 2), tools.echo({ value: 1 })]);
return [seen.join(), result];
