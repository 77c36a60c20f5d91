// Tries: a static import, which the engine may load before any permission is asked for.
// Origin: design.md §3: the static graph may read any file.

import * as fs from "node:fs";
import process_ from "node:process";

export default (input) => [fs.readFileSync(input.file, "utf8"), process_.argv, process_.env[input.env]];
