// Drives the worker: each line of standard input is a JSON command, and each line of output its answer.
// node driver.js BUNDLE EFFECTS STATE

import { Miniflare } from "miniflare";
import { createInterface } from "node:readline";

const [bundle, EFFECTS, state] = process.argv.slice(2);
const agent = new Miniflare({
  modules: true,
  scriptPath: bundle,
  compatibilityDate: "2026-07-01",
  compatibilityFlags: ["nodejs_compat", "experimental"],
  durableObjects: { AGENT: { className: "Agent", useSQLite: true } },
  durableObjectsPersist: state,
  workerLoaders: { LOADER: {} },
  bindings: { EFFECTS },
});

for await (const line of createInterface({ input: process.stdin })) {
  const reply = await agent.dispatchFetch("http://agent/", { method: "POST", body: line });
  const text = await reply.text();
  console.log(reply.ok ? text : JSON.stringify({ status: "error", error: text.slice(0, 500) }));
}
await agent.dispose();
