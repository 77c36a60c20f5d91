// Tries: Deno.permissions: ask for, or claim, what was not given, and then read.
// Origin: Deno CVE-2022-24783 (permissions regained).

const found = [];
for (const name of ["read", "run", "env", "net", "ffi", "sys"]) {
  try {
    found.push((await Deno.permissions.request({ name })).state);
  } catch (error) {
    found.push(`${error}`);
  }
}
found.push(Deno.readTextFileSync(input.file), Deno.args);
return found;
