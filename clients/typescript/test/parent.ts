/** A program that uses an executor and disposes it never: it ends when its own input does, though its server still runs. */

import process from "node:process";
import { GloveportExecutor, type RunOptions } from "../src/index.ts";

const options = JSON.parse(process.argv[2] ?? "{}") as RunOptions;
const { result } = await new GloveportExecutor(options).execute("6 * 7", {});
console.log(result);
process.stdin.resume();
