/** A program that uses an executor and disposes it never: it ends when its own input does, though its server still runs. */

import process from "node:process";
import { GloveportExecutor } from "../src/index.ts";

const config = process.argv[2];
const { result } = await new GloveportExecutor(config === undefined ? {} : { config }).execute("6 * 7", {});
console.log(result);
process.stdin.resume();
