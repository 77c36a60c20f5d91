// Runs a program through the TypeScript package for each line of input, and prints how many seconds it took.

import { createInterface } from "node:readline";
import process from "node:process";

const { GloveportExecutor } = await import(process.argv[2]);
const executor = new GloveportExecutor({ config: process.argv[3] });
const fns = { read: ({ n }) => Promise.resolve(n) };

for await (const line of createInterface(process.stdin)) {
  const started = performance.now();
  const { result, error } = await executor.execute(JSON.parse(line), [{ name: "codemode", fns }]);
  console.log(JSON.stringify({ result, error, seconds: (performance.now() - started) / 1000 }));
}
await executor.dispose();
