/** Runs programs on a server, with tools of the caller: what the executor and the tool for the AI SDK share. */

import { type Answer, GloveportError, messageOf } from "./connection.ts";
import { SessionFilesystem } from "./filesystem.ts";
import type { Limits, LogLine, OfferedTool, Outcome, RunRequest } from "./messages.ts";
import { compile, type Compiler } from "./program.ts";
import { Server, type ServerOptions } from "./servers.ts";
import { decode } from "./values.ts";

/** What a program returned, or why it failed, and what it logged; without `logs`, it was not started. */
export interface ExecuteResult {
  result: unknown;
  error?: string;
  logs?: string[];
}

/** How programs run. Without `url`, a local server is started when it is first needed. */
export interface RunOptions extends ServerOptions {
  /** How long a program may take, in milliseconds. */
  timeout?: number;
  /** Limits below those of the server's settings. */
  limits?: Limits;
  /** What a program finds in `process.env`; it finds nothing else there. */
  env?: Record<string, string>;
  /** The language of programs, `typescript` by default; `coffeescript` uses the package that you have installed. */
  compiler?: Compiler;
  /** Whether programs may use `eval` and `new Function`. */
  allowEval?: boolean;
  /** Whether programs may use WebAssembly. */
  allowWasm?: boolean;
  /** Whether the server logs the text of each program. */
  logCode?: boolean;
  /** The name of files and `state` that the programs share, as long as the server keeps them. */
  session?: string;
  /** The only packages that programs may import, of those that were approved: `npm:zod`. By default all that the server allows. */
  packages?: string[];
}

/** Tools, and the functions that answer their calls. */
export interface Offer {
  tools: OfferedTool[];
  answers: ReadonlyMap<string, Answer>;
}

/** Runs programs until it is disposed. */
export class Runner {
  readonly #options: RunOptions;
  readonly #server: Server;
  #disposed: Promise<void> | undefined;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#server = Server.for(options);
  }

  /** Runs a program with the tools that `offer` returns; returns its result or error. It never throws. */
  async run(code: string, offer: () => Offer | Promise<Offer>, signal?: AbortSignal): Promise<ExecuteResult> {
    try {
      if (this.#disposed) throw new GloveportError({ code: "disposed", message: "this executor was disposed" });
      const { tools, answers } = await offer();
      const request = { ...this.#request(code), tools };
      const connection = await this.#server.connect();
      return resultOf(await connection.run(request, answers, signal));
    } catch (error) {
      const hint = error instanceof GloveportError && error.hint ? ` (${error.hint})` : "";
      return { result: undefined, error: messageOf(error) + hint };
    }
  }

  /** The files of the session; undefined without one. */
  get filesystem(): SessionFilesystem | undefined {
    const { session } = this.#options;
    return session === undefined ? undefined : new SessionFilesystem(this.#server, session);
  }

  /** Whether a server runs for it. */
  get isStarted(): boolean {
    return this.#server.isInUse;
  }

  /** Lets go of the server: a local one ends with its last user. */
  dispose(): Promise<void> {
    return this.#disposed ??= this.#server.release();
  }

  #request(code: string): Omit<RunRequest, "tools"> {
    const { timeout, limits, env, compiler = "typescript", allowEval, allowWasm, logCode, session, packages } = this
      .#options;
    return {
      ...compile(code, compiler),
      ...(timeout !== undefined && { timeoutMs: timeout }),
      ...(limits !== undefined && { limits }),
      ...(env !== undefined && { env }),
      ...(allowEval !== undefined && { allowEval }),
      ...(allowWasm !== undefined && { allowWasm }),
      ...(logCode !== undefined && { logCode }),
      ...(session !== undefined && { session }),
      ...(packages !== undefined && { packages }),
    };
  }
}

function resultOf(outcome: Outcome): ExecuteResult {
  const logs = outcome.logs.map(logText);
  if (outcome.status === "completed") return { result: decode(outcome.value), logs };
  return { result: undefined, error: errorText(outcome), logs };
}

function logText({ level, text }: LogLine): string {
  return level === "warn" || level === "error" ? `[${level}] ${text}` : text;
}

function errorText({ status, run, error, waiting }: Outcome): string {
  if (status === "waiting") {
    const calls = waiting.length === 1 ? "a call" : `${waiting.length} calls`;
    return `the run ${run} waits for a person to approve ${calls}: gloveport approvals approve --run ${run}`;
  }
  if (error?.code === "time-limit") return "Execution timed out";
  return error?.message ?? `the run was ${status}`;
}
