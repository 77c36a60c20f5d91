// Tries: a process by node:child_process, with each of its functions.
// Origin: n8n CVE-2025-68613's payload; smolagents' os.popen.

const child = process.getBuiltinModule("child_process");
const found = [];
for (const run of [
  () => child.execSync(`echo written > '${input.write}'`),
  () => child.spawnSync("touch", [input.write]),
  () => child.execFileSync("touch", [input.write]),
]) {
  try {
    found.push(String(run()));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
