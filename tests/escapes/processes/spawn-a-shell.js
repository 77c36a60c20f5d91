// Tries: a shell by Deno.Command.
// Origin: the plain one.

const { success } = new Deno.Command("sh", { args: ["-c", `echo written > '${input.write}'`] }).outputSync();
return success;
