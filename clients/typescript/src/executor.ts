/** `GloveportExecutor`: an executor for `@cloudflare/codemode` that runs programs in Gloveport's sandbox. */

import { GloveportError } from "./connection.ts";
import { offer, type ResolvedProvider, ROOT_PROVIDER } from "./program.ts";
import { type ExecuteResult, Runner, type RunOptions } from "./runner.ts";

/** Options of one execution. */
export interface ExecuteOptions {
  /** Bindings of Cloudflare Workers; Gloveport refuses them. */
  connectors?: readonly { name: string }[];
  /** Ends the run when it is aborted. */
  signal?: AbortSignal;
}

/** Runs programs that a model wrote. Implements the `Executor` interface of `@cloudflare/codemode`. */
export class GloveportExecutor {
  readonly #runner: Runner;

  constructor(options: RunOptions = {}) {
    this.#runner = new Runner(options);
  }

  /** Runs a program, whose calls go to the functions given; returns its result or error. It never throws. */
  execute(
    code: string,
    providersOrFns: readonly ResolvedProvider[] | ResolvedProvider["fns"],
    options: ExecuteOptions = {},
  ): Promise<ExecuteResult> {
    return this.#runner.run(code, () => {
      if (options.connectors?.length) {
        throw new GloveportError({ code: "bad-option", message: "Gloveport has no connectors: pass providers" });
      }
      return offer(isProviders(providersOrFns) ? providersOrFns : [{ name: ROOT_PROVIDER, fns: providersOrFns }]);
    }, options.signal);
  }

  /** Lets go of the server: a local one ends with its last executor. */
  dispose(): Promise<void> {
    return this.#runner.dispose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

function isProviders(
  given: readonly ResolvedProvider[] | ResolvedProvider["fns"],
): given is readonly ResolvedProvider[] {
  return Array.isArray(given);
}
