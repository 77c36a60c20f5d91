/** What the tests share: folders of their own, and one local server for a test file. */

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { GloveportExecutor, type RunOptions } from "../src/index.ts";

/** A folder of this test file, where its servers keep what they record. */
export const folder = mkdtempSync(join(tmpdir(), "gloveport-test-"));
for (const name of ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"]) process.env[name] = join(folder, name);

/** Returns the path of a `gloveport.toml` with this text. */
export function settings(name: string, text = ""): string {
  const path = join(folder, `${name}.toml`);
  writeFileSync(path, text);
  return path;
}

/** The settings of the server that most tests share. */
export const config = settings("plain");
const opened: GloveportExecutor[] = [];

/** Returns an executor on the shared server, which ends with the tests. */
export function executor(options: RunOptions = {}): GloveportExecutor {
  const made = new GloveportExecutor({ config, ...options });
  opened.push(made);
  return made;
}

after(async () => {
  await Promise.all(opened.map((each) => each.dispose()));
});

/** The longest that one test may take. */
export const DEADLINE = { timeout: 60_000 };

/** A function that remembers how it was called. */
export interface Recorded {
  (...args: unknown[]): Promise<unknown>;
  calls: unknown[][];
}

/** Returns an async function that keeps the arguments of its calls. */
export function recorded(answer: (...args: never[]) => unknown): Recorded {
  const calls: unknown[][] = [];
  const made = (...args: unknown[]) => {
    calls.push(args);
    return Promise.resolve().then(() => answer(...args as never[]));
  };
  return Object.assign(made, { calls });
}

/** Returns the provider whose tools a program calls as `codemode.NAME`. */
export function codemode(fns: Record<string, (...args: unknown[]) => Promise<unknown>>) {
  return [{ name: "codemode", fns }];
}
