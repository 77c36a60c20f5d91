/** The files of a session on the server, as its caller sees them: a program finds them in `/workspace`. */

import { GloveportError } from "./connection.ts";
import type { Problem } from "./messages.ts";
import type { Server } from "./servers.ts";

/** A server takes requests of 4 MiB, and a file is sent in base64. */
const MAX_WRITTEN_BYTES = 3_000_000;

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
  /** The name of the session. */
  readonly session: string;
  readonly #server: Server;

  constructor(server: Server, session: string) {
    this.session = session;
    this.#server = server;
  }

  /** Puts a file of up to 3 MB there, in place of one of the same path. */
  async writeFile(path: string, content: string | Uint8Array): Promise<void> {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    if (bytes.length > MAX_WRITTEN_BYTES) {
      throw new GloveportError({
        code: "request-too-large",
        message: `${path} has ${bytes.length} bytes: a file that is sent has at most ${MAX_WRITTEN_BYTES}`,
        hint: `Send it in parts, or put it there by \`gloveport sessions put ${this.session} FILE\`.`,
      });
    }
    await this.#ask("POST", "file", path, { content: Buffer.from(bytes).toString("base64") });
  }

  /** Returns the content of a file. */
  async readFile(path: string): Promise<Uint8Array> {
    const { content = "" } = await this.#ask("GET", "file", path);
    return new Uint8Array(Buffer.from(content, "base64"));
  }

  /** Returns the files, by path. */
  async list(): Promise<FileEntry[]> {
    try {
      return (await this.#ask("GET", "files")).files ?? [];
    } catch (error) {
      if (error instanceof GloveportError && error.code === "not-found") return []; // nothing was kept there yet
      throw error;
    }
  }

  /** Deletes a file, or a folder with everything in it. */
  async remove(path: string): Promise<void> {
    await this.#ask("DELETE", "file", path);
  }

  /** Deletes everything, also the `state` of the programs. */
  async clear(): Promise<void> {
    await this.#ask("DELETE");
  }

  async #ask(method: string, what?: string, path?: string, body?: object): Promise<Answer> {
    const { url, token } = await this.#server.address();
    const address = new URL(`/v1/sessions/${encodeURIComponent(this.session)}${what ? `/${what}` : ""}`, url);
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
