/** The same programs in our executor and in that of `@cloudflare/codemode`, which needs Cloudflare's runtime: results are alike. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { DEADLINE, executor } from "./support.ts";
import { PROGRAMS, providers, TIMEOUT_MS } from "./upstream/programs.ts";

/** Where ours differs, as the README says. */
const OURS: Record<string, object> = {
  "a tool that returns nothing": { result: "object", logs: [] }, // null, not undefined
  "a program that returns nothing": { result: null, logs: [] },
  "a date": { result: true, logs: [] },
  "a thrown text": { error: "text", logs: [] },
  "the console": { result: 1, logs: ["a 1 true", "b", "c", "[warn] d", "[error] e"] },
  "an object on the console": { result: 1, logs: ["{ a: 1 } [ 1, 2 ] null undefined"] },
  "a syntax error": { error: "unexpected `;`", logs: [] },
  "an unknown tool": { error: "no tool `codemode.unknown`", logs: [] },
  "the network": {
    error: "`tools.egress.read` is not allowed: the user has not allowed GET https://example.com",
    logs: [],
  },
  "a program that waits for ever": { error: "the program waits for something that can never happen", logs: [] },
  "TypeScript": { result: 42, logs: [] },
};

/** Returns what the other executor makes of each program. */
async function theirs(): Promise<Record<string, object>> {
  const worker = new URL(
    import.meta.url.endsWith(".ts") ? "./upstream/worker.ts" : "./upstream/worker.js",
    import.meta.url,
  );
  const { outputFiles } = await build({
    entryPoints: [worker.pathname],
    write: false,
    bundle: true,
    format: "esm",
    external: ["cloudflare:*", "node:*"],
  });
  const runtime = new Miniflare({
    modules: true,
    script: outputFiles[0]!.text,
    compatibilityDate: "2026-07-01",
    compatibilityFlags: ["nodejs_compat", "experimental"],
    workerLoaders: { LOADER: {} },
  });
  try {
    return await (await runtime.dispatchFetch("http://worker/")).json() as Record<string, object>;
  } finally {
    await runtime.dispose();
  }
}

test("the same programs give the same results as in the executor of @cloudflare/codemode", DEADLINE, async () => {
  const expected = await theirs();
  const run = executor({ timeout: TIMEOUT_MS });
  for (const [name, code] of Object.entries(PROGRAMS)) {
    const found: unknown = JSON.parse(JSON.stringify(await run.execute(code, providers())));
    assert.deepEqual(found, OURS[name] ?? expected[name], name);
    if (name in OURS) assert.notDeepEqual(OURS[name], expected[name], `${name} does not differ any more`);
  }
});
