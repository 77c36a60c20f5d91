/**
 * A local `gloveport serve`, shared by the executors of this process. It ends when the last of them is disposed, and with
 * this process, however that ends: it holds the server's standard input open, and the server stops at its end.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { GloveportError } from "./connection.ts";

const START_TIMEOUT_MS = 30_000;
const MAX_SHOWN_CHARS = 2000; // of what a server wrote that did not start

/** How to start the server. */
export interface LocalServerOptions {
  /** The command, by default the `gloveport` on the PATH. */
  command?: string;
  /** The `gloveport.toml` to use, by default the nearest one. */
  config?: string;
}

/** A server that has started, and what opens it. */
export interface LocalServer {
  url: string;
  token: string;
  /** Ends it, with all its runs; returns when it has ended. */
  stop(): Promise<void>;
}

/** Starts a server; throws a GloveportError if it does not start. */
export async function startLocalServer(options: LocalServerOptions): Promise<LocalServer> {
  const folder = await mkdtemp(join(tmpdir(), "gloveport-")); // with mode 0700
  const token = randomBytes(32).toString("base64url");
  const tokenFile = join(folder, "token");
  try {
    await writeFile(tokenFile, token, { mode: 0o600 });
    const config = options.config === undefined ? [] : ["--config", options.config];
    const args = [
      "serve",
      "--port",
      "0",
      "--role",
      "host",
      "--token-file",
      tokenFile,
      "--until-eof",
      "--grace",
      "0",
      "--quiet",
    ];
    const child = spawn(options.command ?? "gloveport", [...args, "--json", ...config], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    const url = await urlOf(child, options.command ?? "gloveport");
    return { url, token, stop: () => end(child) };
  } finally {
    await rm(folder, { recursive: true, force: true }); // the server has read it
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const ended = once(child, "exit");
  child.stdin?.end();
  await ended;
}

/** Returns the URL that a server prints once it listens, and lets this process end without it. */
function urlOf(child: ChildProcess, command: string): Promise<string> {
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) throw new TypeError("a server needs pipes");
  let shown = "";
  const collect = (part: Buffer) => void (shown = (shown + part).slice(-MAX_SHOWN_CHARS));
  stderr.on("data", collect);
  stdin.on("error", () => {}); // it has ended already
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      reject(
        new GloveportError({
          code: "not-started",
          message: `can't start \`${command}\`: ${reason}`.trim(),
          hint: HINT,
        }),
      );
    };
    const timer = setTimeout(() => fail(`nothing within ${START_TIMEOUT_MS / 1000} s. ${shown}`), START_TIMEOUT_MS);
    child.once(
      "error",
      (error: NodeJS.ErrnoException) => fail(error.code === "ENOENT" ? "it is not on the PATH" : error.message),
    );
    child.once("close", (code) => fail(`it ended with code ${code}. ${shown}`));
    createInterface(stdout).once("line", (line) => {
      const started = JSON.parse(line) as { url?: string; error?: { message: string } };
      if (started.url === undefined) return fail(started.error?.message ?? line);
      clearTimeout(timer);
      stderr.off("data", collect);
      stderr.pipe(process.stderr); // its warnings, and the programs that `logCode` logs
      for (const part of [child, stdin, stdout, stderr]) (part as Partial<Unreferenced>).unref?.();
      resolve(started.url);
    });
  });
}

interface Unreferenced {
  unref(): void;
}

const HINT = "activate the environment that has it, or say where it is with `command`, or where it runs with `url`";
