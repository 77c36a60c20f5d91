// Tries: everything that hangs on the error of a failed tool call: the host's exception has secrets in its locals,
// causes and attributes.
// Origin: CVE-2026-22686 (Enclave, CVSS 10): the error of a failed tool call; Python tracebacks hold frames.
// control: naive prelude

const found = [];
const seen = new Set();
function dig(value, depth) {
  if (value === null || value === undefined || depth > 8 || seen.has(value)) return;
  if (typeof value !== "object" && typeof value !== "function") return found.push(String(value));
  seen.add(value);
  for (let place = value; place; place = Object.getPrototypeOf(place)) {
    for (const name of Reflect.ownKeys(place)) {
      try {
        found.push(String(name));
        dig(value[name], depth + 1);
      } catch { /* on */ }
    }
  }
}
for (const call of [() => tools.betray(), () => tools.crash(), () => tools.fail({ message: "m" }), () => tools.echo(1, 2, 3)]) {
  try {
    await call();
  } catch (error) {
    dig(error, 0);
    dig(error.cause, 0);
    found.push(String(error), error.stack);
  }
}
return found.join(" ").slice(0, 100000);
