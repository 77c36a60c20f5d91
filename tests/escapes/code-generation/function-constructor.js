// Tries: new Function, and a body that closes its own function.
// Origin: vm2 CVE-2023-32314; bodies that close their own function.

const found = [];
for (const args of [["return [Deno.args, Deno.readTextFileSync(input.file)]"], ["a = [Deno.args, Deno.readTextFileSync(input.file)]", "return a"], ["}, [Deno.args, Deno.readTextFileSync(input.file)], function () {"]]) {
  try {
    found.push(new Function(...args)());
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
