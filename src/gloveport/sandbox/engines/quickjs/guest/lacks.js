// What this engine does not have, told when it is asked for; `prepare` tells most of it before the run.

import { ToolError } from "./errors.js";

/** Throws the error that says what is missing, and which engine has it. */
export function lacks(what) {
  throw new ToolError(`the engine \`quickjs\` has no ${what}`, {
    code: "engine-lacks",
    hint: 'the engine `deno` has it: run it with engine="deno" (--engine deno)',
  });
}
