/** Turns what an executor was given into a program that Gloveport runs, and the tools that it offers. */

import { createRequire } from "node:module";
import { join } from "node:path";
import type { Answer } from "./connection.ts";
import { GloveportError } from "./connection.ts";
import type { OfferedTool, RunRequest } from "./messages.ts";

/** The language that programs are written in. */
export type Compiler = "typescript" | "javascript" | "coffeescript";

/** The tools of one namespace, as `@cloudflare/codemode` passes them to an executor. */
export interface ResolvedProvider {
  name: string;
  fns: Record<string, (...args: unknown[]) => Promise<unknown>>;
  /** JavaScript for the sandbox; Gloveport refuses it, because a program there has its own `step`. */
  prelude?: string;
}

/** The namespace whose tools are at the root of `tools`, which is also called `codemode`. */
export const ROOT_PROVIDER = "codemode";

// Names of a sandbox itself: a provider of that name would hide them from the program.
const RESERVED_NAMES = new Set([
  "console",
  "Promise",
  "setTimeout",
  "Error",
  "tools",
  "input",
  "emit",
  "step",
  "state",
  "fetch",
]);
const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

/** Returns the name by which a program calls a tool: an identifier, made as `@cloudflare/codemode` makes it. */
export function identifierFor(name: string): string {
  if (IDENTIFIER.test(name)) return name;
  const safe = name.replace(/[-.\s]/g, "_").replace(/[^A-Za-z0-9_$]/g, "");
  if (safe === "") return "_";
  return /^[0-9]/.test(safe) ? `_${safe}` : safe;
}

/** Returns the tools of all providers, and the functions that answer them; throws a GloveportError for names that clash. */
export function offer(providers: readonly ResolvedProvider[]): { tools: OfferedTool[]; answers: Map<string, Answer> } {
  const names = new Set<string>();
  const answers = new Map<string, Answer>();
  const tools: OfferedTool[] = [];
  for (const provider of providers) {
    check(provider, names);
    const originals = new Map<string, string>();
    for (const [original, answer] of Object.entries(provider.fns)) {
      const safe = identifierFor(original);
      const other = originals.get(safe);
      if (other !== undefined) {
        throw refused(
          `Tool names "${other}" and "${original}" both sanitize to "${safe}" in provider "${provider.name}"`,
        );
      }
      originals.set(safe, original);
      const name = provider.name === ROOT_PROVIDER ? safe : `${provider.name}.${safe}`;
      answers.set(name, answer);
      tools.push({ name, positional: true });
    }
  }
  return { tools, answers };
}

function check(provider: ResolvedProvider, names: Set<string>): void {
  const { name, prelude } = provider;
  if (RESERVED_NAMES.has(name) || name.startsWith("__")) throw refused(`Provider name "${name}" is reserved`);
  if (!IDENTIFIER.test(name)) throw refused(`Provider name "${name}" is not a valid JavaScript identifier`);
  if (names.has(name)) throw refused(`Duplicate provider name "${name}"`);
  if (prelude) throw refused(`Provider "${name}" has a prelude, which Gloveport does not run`);
  names.add(name);
}

function refused(message: string): GloveportError {
  return new GloveportError({ code: "bad-option", message });
}

/** Returns the program in a language that Gloveport runs. */
export function compile(code: string, compiler: Compiler): Pick<RunRequest, "code" | "language"> {
  if (compiler !== "coffeescript") return { code, language: compiler };
  const coffee = coffeeScript();
  return { code: coffee.compile(code, { bare: true }), language: "javascript" };
}

interface CoffeeScript {
  compile(code: string, options: { bare: boolean }): string;
}

/** Returns the CoffeeScript compiler that the application itself has installed. */
function coffeeScript(): CoffeeScript {
  try {
    return createRequire(join(process.cwd(), "package.json"))("coffeescript") as CoffeeScript;
  } catch {
    const hint = "`npm install coffeescript@2.7.0` in the folder of your application";
    throw new GloveportError({
      code: "compiler-missing",
      message: 'compiler: "coffeescript" needs the package `coffeescript`',
      hint,
    });
  }
}
