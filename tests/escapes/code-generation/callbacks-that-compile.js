// Tries: eval and Function as callbacks of built-ins, which call them with our text.
// Origin: JSON.parse revivers and Array.from mappers in jsfuck-style escapes.

const text = "[Deno.args, Deno.readTextFileSync(input.file)]";
const found = [];
for (const run of [
  () => [text].map(eval),
  () => Array.from([`return ${text}`], Function)[0](),
  () => {
    let value;
    text.replace(/[^]+/, (all) => value = eval(all));
    return value;
  },
  () => JSON.parse(JSON.stringify([text]), (key, value) => key === "0" ? eval(value) : value),
  () => [...[text].values()].reduce((_, code) => eval(code), 0),
  () => eval?.(text),
  () => eval.call`${text}`,
]) {
  try {
    found.push(run());
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
