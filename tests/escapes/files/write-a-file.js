// Tries: a file on the host, new and appended to.
// Origin: the plain one.

try {
  Deno.writeTextFileSync(input.write, "written");
} catch (error) {
  console.log(String(error));
}
await Deno.writeTextFile(`${input.directory}/x`, "written", { append: true, create: true });
return 1;
