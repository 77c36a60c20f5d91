/** The files of a session on the server, as its caller sees them: a program finds them in `/workspace`. */

import { GloveportError } from "./connection.ts";
import type { Problem } from "./messages.ts";
import type { Server } from "./servers.ts";

/** A file: its path below `/workspace`, and its size in bytes. */
export interface FileEntry {
  path: string;
  size: number;
}

interface Answer {
  ok: boolean;
  error?: Problem;
  content?: string;
  files?: FileEntry[];
}

/** Puts files into a session, and takes them out. A change waits for a run that uses the session. */
export class SessionFilesystem {
  readonly #server: Server;
  readonly #session: string;

  constructor(server: Server, session: string) {
    this.#server = server;
    this.#session = session;
  }

  /** Puts a file there, in place of one of the same path. */
  async writeFile(path: string, content: string | Uint8Array): Promise<void> {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    await this.#ask("POST", "file", path, { content: Buffer.from(bytes).toString("base64") });
  }

  /** Returns the content of a file. */
  async readFile(path: string): Promise<Uint8Array> {
    const { content = "" } = await this.#ask("GET", "file", path);
    return new Uint8Array(Buffer.from(content, "base64"));
  }

  /** Returns the files, by path. */
  async list(): Promise<FileEntry[]> {
    return (await this.#ask("GET", "files")).files ?? [];
  }

  /** Deletes a file, or a folder with everything in it. */
  async remove(path: string): Promise<void> {
    await this.#ask("DELETE", "file", path);
  }

  async #ask(method: string, what: string, path?: string, body?: object): Promise<Answer> {
    const { url, token } = await this.#server.address();
    const address = new URL(`/v1/sessions/${encodeURIComponent(this.#session)}/${what}`, url);
    if (path !== undefined) address.searchParams.set("path", path);
    const reply = await fetch(address, {
      method,
      redirect: "error",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = await reply.json() as Answer;
    if (!answer.ok) throw new GloveportError(answer.error ?? { code: "bad-reply", message: `status ${reply.status}` });
    return answer;
  }
}
