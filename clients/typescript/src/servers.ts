/** The servers of this process, each with one connection that all its users share. */

import { Connection } from "./connection.ts";
import { type LocalServer, type LocalServerOptions, startLocalServer } from "./local_server.ts";

/** A server that runs already, or how to start one. */
export interface ServerOptions extends LocalServerOptions {
  /** The address of a `gloveport serve`; without one, a local server is started when it is first needed. */
  url?: string;
  /** The token of a caller with the role `host`; by default `GLOVEPORT_TOKEN`. */
  token?: string;
}

const servers = new Map<string, Server>();

/** A server with its users. */
export class Server {
  readonly #key: string;
  readonly #options: ServerOptions;
  #users = 0;
  #local: Promise<LocalServer> | undefined;
  #connection: Promise<Connection> | undefined;

  private constructor(key: string, options: ServerOptions) {
    this.#key = key;
    this.#options = options;
  }

  /** Returns the server for these options; its user calls `release` when it needs it no more. */
  static for({ url, token, command, config }: ServerOptions): Server {
    const key = JSON.stringify([url, token, command, config]);
    let found = servers.get(key);
    if (found === undefined) {
      const options = {
        ...(url && { url }),
        ...(token && { token }),
        ...(command && { command }),
        ...(config && { config }),
      };
      servers.set(key, found = new Server(key, options));
    }
    found.#users++;
    return found;
  }

  /** Returns the open connection; connects anew when it was lost, with a new local server. */
  connect(): Promise<Connection> {
    if (this.#connection !== undefined) return this.#connection;
    const forget = () => {
      if (this.#connection === opening) this.#connection = undefined;
    };
    const opening = this.#open(forget);
    opening.catch(forget);
    return this.#connection = opening;
  }

  /** Whether anybody has used the server. */
  get isInUse(): boolean {
    return this.#connection !== undefined;
  }

  /** Returns where the server is, and the token for it; a local one is started. */
  async address(): Promise<{ url: string; token: string }> {
    const { url, token = process.env.GLOVEPORT_TOKEN ?? "" } = this.#options;
    if (url !== undefined) return { url, token };
    await this.connect();
    const local = await this.#local;
    return { url: local?.url ?? "", token: local?.token ?? "" };
  }

  async #open(onClose: () => void): Promise<Connection> {
    const { url, token = process.env.GLOVEPORT_TOKEN ?? "" } = this.#options;
    if (url !== undefined) return await Connection.open(url, token, onClose);
    await this.#stop();
    this.#local = startLocalServer(this.#options);
    const local = await this.#local;
    return await Connection.open(local.url, local.token, onClose);
  }

  async #stop(): Promise<void> {
    const local = await this.#local?.catch(() => undefined);
    await local?.stop();
  }

  /** Ends the connection, and the local server, when nobody uses them any more. */
  async release(): Promise<void> {
    if (--this.#users > 0) return;
    servers.delete(this.#key);
    (await this.#connection?.catch(() => undefined))?.close();
    await this.#stop();
  }
}
