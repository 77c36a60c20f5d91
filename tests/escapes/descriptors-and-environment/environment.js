// Tries: a variable of the host's environment, by the platform and by libc.
// Origin: S9; CVE-2024-21892.

const found = [];
for (const read of [() => Deno.env.get(input.env), () => JSON.stringify(Deno.env.toObject()), () => process.env[input.env], () => JSON.stringify(process.env)]) {
  try {
    found.push(read());
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
