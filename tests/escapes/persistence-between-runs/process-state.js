// Tries: environment variables, the process title, performance marks, the symbol registry and console counters.
// Origin: S16; state of the platform that no context owns.

const found = [];
for (const [plant, look] of [
  [() => Deno.env.set("PLANTED", input.plant), () => Deno.env.get("PLANTED")],
  [() => performance.mark(input.plant), () => performance.getEntries().map((entry) => entry.name).join()],
  [() => process.title = input.plant, () => process.title],
  [() => Symbol.for("planted").constructor.planted = input.plant, () => Symbol.planted],
  [() => process.env.PLANTED = input.plant, () => process.env.PLANTED],
  [() => state.planted = input.plant, () => state.planted],
  [() => Intl.planted = input.plant, () => Intl.planted],
]) {
  try {
    found.push(input.round === 1 ? plant() && null : look());
  } catch (error) {
    found.push(String(error));
  }
}
return input.round === 2 ? found : null;
