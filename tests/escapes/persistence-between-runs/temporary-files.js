// Tries: files in the places where everybody may write.
// Origin: S16; /tmp races.

const found = [];
for (const folder of ["/tmp", "/dev/shm", "/var/tmp", "/workspace", "/guest", "/run", "."]) {
  const path = `${folder}/gloveport-planted-${input.shm}`;
  try {
    if (input.round === 1) Deno.writeTextFileSync(path, input.plant);
    else {
      found.push(Deno.readTextFileSync(path));
      Deno.removeSync(path);
    }
  } catch (error) {
    found.push(String(error));
  }
}
return input.round === 2 ? found : null;
