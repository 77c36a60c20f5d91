// What the TypeScript package uses of npm's `ws`, made of Deno's own WebSocket: so its tests run without a download.

import { EventEmitter } from "node:events";

const Native = globalThis.WebSocket;

export class WebSocket extends EventEmitter {
  static OPEN = Native.OPEN;
  #socket;

  constructor(address, { headers }) {
    super();
    this.#socket = new Native(address, { headers });
    this.#socket.onopen = () => this.emit("open");
    this.#socket.onmessage = ({ data }) => this.emit("message", data);
    this.#socket.onclose = ({ code, reason }) => this.emit("close", code, reason);
    this.#socket.onerror = ({ message }) => this.emit("error", new Error(message));
  }

  get readyState() {
    return this.#socket.readyState;
  }

  send(text) {
    this.#socket.send(text);
  }

  close() {
    this.#socket.close();
  }
}
