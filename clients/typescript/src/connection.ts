/** One WebSocket to a server, shared by all runs that go there. It keeps the process alive only while a run is under way. */

import type { Socket } from "node:net";
import { WebSocket } from "ws";
import type { FromServer, Outcome, Problem, RunRequest, ToServer } from "./messages.ts";
import { decode, encode, type Wire } from "./values.ts";

const HOST_PATH = "/v1/host";
const CONNECT_TIMEOUT_MS = 30_000;
const MAX_RECEIVED_BYTES = 32 * 1024 * 1024; // twice the server's largest frame
const MAX_SENT_BYTES = 4 * 1024 * 1024; // the server closes the connection, with all its runs, on a longer message

/** A function that answers a program's call: its arguments are those that the program passed. */
export type Answer = (...args: unknown[]) => unknown;

/** An error of Gloveport itself: a run that was refused, or a connection that failed. */
export class GloveportError extends Error {
  override name = "GloveportError";
  readonly code: string;
  readonly hint: string | undefined;

  constructor(problem: Problem) {
    super(problem.message);
    this.code = problem.code;
    this.hint = problem.hint ?? undefined;
  }
}

interface ActiveRun {
  answers: ReadonlyMap<string, Answer>;
  /** Whether it waits for a person. Its caller has its outcome then; its calls are still answered when it goes on. */
  waits: boolean;
  resolve: (outcome: Outcome) => void;
  reject: (error: Error) => void;
}

/** A connection to the server at a URL. */
export class Connection {
  readonly #socket: WebSocket;
  readonly #runs = new Map<string, ActiveRun>();
  #stream: Socket | undefined;
  #started = 0;

  private constructor(socket: WebSocket, onClose: () => void) {
    this.#socket = socket;
    socket.on("close", onClose);
    socket.on("upgrade", (response) => this.#stream = response.socket);
    socket.on("message", (data) => this.#receive(JSON.parse(String(data)) as FromServer));
    socket.on("close", (code, reason) => this.#lose(`the connection to Gloveport closed (${code}) ${reason}`.trim()));
    socket.on("error", (error) => this.#lose(`the connection to Gloveport failed: ${error.message}`));
  }

  /** Returns an open connection; throws a GloveportError if the server can't be reached or refuses it. */
  static async open(url: string, token: string, onClose: () => void): Promise<Connection> {
    const address = new URL(HOST_PATH, url.replace(/^http/, "ws"));
    const socket = new WebSocket(address, {
      headers: { Authorization: `Bearer ${token}` },
      handshakeTimeout: CONNECT_TIMEOUT_MS,
      maxPayload: MAX_RECEIVED_BYTES,
      perMessageDeflate: false,
    });
    const connection = new Connection(socket, onClose);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", (error) => reject(cannotReach(url, error.message)));
      socket.once("unexpected-response", (_request, response) => {
        const token = response.statusCode === 401 || response.statusCode === 403 ? ": check the token" : "";
        reject(cannotReach(url, `status ${response.statusCode}${token}`));
        socket.terminate();
      });
    });
    connection.#hold();
    return connection;
  }

  /** Whether runs can be started on it. */
  get usable(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /** Runs a program and answers its calls; returns its outcome. Throws a GloveportError if the server refuses it. */
  async run(request: RunRequest, answers: ReadonlyMap<string, Answer>, signal?: AbortSignal): Promise<Outcome> {
    const run = `${++this.#started}`; // known on this socket alone
    const message = JSON.stringify(
      { type: "run", run, unnamed: true, values: "tagged", quiet: true, ...request } satisfies ToServer,
    );
    if (tooLong(message)) {
      throw new GloveportError({ code: "program-too-large", message: `the program and its tools have ${TOO_LONG}` });
    }
    const cancel = () => this.#send({ type: "cancel", run });
    try {
      return await new Promise<Outcome>((resolve, reject) => {
        this.#runs.set(run, { answers, waits: false, resolve, reject });
        this.#hold();
        this.#sendText(message);
        if (signal?.aborted) cancel();
        signal?.addEventListener("abort", cancel, { once: true });
      });
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** Closes it: the server ends the runs that are under way. */
  close(): void {
    this.#socket.close();
    this.#lose("the connection to Gloveport was closed by its caller");
    this.#hold();
  }

  /** Lets the process end while no run is under way. */
  #hold(): void {
    const held = [...this.#runs.values()].some((run) => !run.waits);
    if (held) this.#stream?.ref();
    else this.#stream?.unref();
  }

  #send(message: ToServer): void {
    this.#sendText(JSON.stringify(message));
  }

  #sendText(message: string): void {
    if (this.usable) this.#socket.send(message);
    else this.#lose("the connection to Gloveport is closed");
  }

  #receive(message: FromServer): void {
    const run = this.#runs.get(message.run);
    if (run === undefined) return;
    if (message.type === "call") {
      void this.#answer(message, run.answers.get(message.tool));
      return;
    }
    if (message.type === "outcome") run.resolve(message.outcome);
    else if (message.type === "refused") run.reject(new GloveportError(message.error));
    else return;
    run.waits = message.type === "outcome" && message.outcome.status === "waiting";
    if (!run.waits) this.#runs.delete(message.run);
    this.#hold();
  }

  async #answer(
    message: { run: string; call: number; tool: string; args: Wire },
    answer: Answer | undefined,
  ): Promise<void> {
    const { run, call } = message;
    let reply: string;
    try {
      if (answer === undefined) throw new Error(`Tool "${message.tool}" not found`);
      const args = decode(message.args);
      const value = await (Array.isArray(args) ? answer(...args) : answer(args));
      reply = JSON.stringify({ type: "result", run, call, value: encode(value) } satisfies ToServer);
      if (tooLong(reply)) throw new Error(`the result of \`${message.tool}\` has ${TOO_LONG}: return less at a time`);
    } catch (error) {
      reply = JSON.stringify({ type: "error", run, call, error: { message: messageOf(error) } } satisfies ToServer);
    }
    if (this.#runs.has(run)) this.#sendText(reply);
  }

  #lose(message: string): void {
    const hint = "the program's calls so far are in `gloveport runs`";
    for (const run of this.#runs.values()) run.reject(new GloveportError({ code: "connection-lost", message, hint }));
    this.#runs.clear();
  }
}

const TOO_LONG = `more than ${MAX_SENT_BYTES / 1024 / 1024} MiB of JSON`;

function tooLong(message: string): boolean {
  return message.length > MAX_SENT_BYTES || Buffer.byteLength(message) > MAX_SENT_BYTES;
}

function cannotReach(url: string, reason: string): GloveportError {
  const hint = "is `gloveport serve` running there?";
  return new GloveportError({
    code: "not-reachable",
    message: `can't connect to Gloveport at ${url}: ${reason}`,
    hint,
  });
}

/** Returns the text of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
