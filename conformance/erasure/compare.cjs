// Reads pairs of a program with types and the same without, and tells of those that do not mean the same to esbuild.

const { transformSync } = require("esbuild");
const pairs = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

const options = {
  target: "esnext",
  minifyWhitespace: true,
  legalComments: "none",
  logLevel: "silent",
  tsconfigRaw: { compilerOptions: { useDefineForClassFields: true, verbatimModuleSyntax: true } },
};

// A `;` more, which erasing may leave behind, means nothing after a `;`, a `}` or at the beginning.
function plain(code) {
  return code.replace(/^;+/, "").replace(/\};+/g, "}").replace(/;+/g, ";").replace(/\{;/g, "{").replace(/;\}/g, "}");
}

function printed(code, loader) {
  try {
    return plain(transformSync(code, { ...options, loader }).code);
  } catch (error) {
    return `can't be read: ${error.message}`;
  }
}

for (const { path, typed, erased } of pairs) {
  const wanted = printed(typed, "ts");
  const found = printed(erased, "js");
  if (wanted === found || wanted.startsWith("can't be read")) continue;
  let at = 0;
  while (wanted[at] === found[at]) at++;
  console.log(`${path}\n  with types: ${wanted.slice(at - 40, at + 60)}\n  without:    ${found.slice(at - 40, at + 60)}`);
}
