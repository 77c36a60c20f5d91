// Errors for what this engine does not have. `subset.py` reports most of it before the run.

import { ToolError } from "./errors.js";

/** Throws the error that names what is missing and the engine that has it. */
export function lacks(what) {
  throw new ToolError(`the engine \`quickjs\` has no ${what}`, {
    code: "engine-lacks",
    hint: "the engine `deno` has it; where you can name no engine, do without it",
  });
}
