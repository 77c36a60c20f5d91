// Follows a stream of server-sent events. EventSource can't send headers and hides the status of a refusal, so this is fetch.
import { asApiError, keptKey, problemOf, type ApiError } from "./api";

export interface ServerEvent {
  kind: string;
  id: string;
  data: unknown;
}

export interface Following {
  /** Whether nothing more will come. Without it, the end of the stream is the end. */
  isOver?: () => boolean;
  onEvents: (events: ServerEvent[]) => void;
  onState?: (state: "live" | "lost" | "ended") => void;
  onError?: (error: ApiError) => void;
}

const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 5_000;
const MAX_SILENCE_MS = 40_000; // the server says every 15 seconds that it is still there
const REFUSALS = new Set([400, 401, 403, 404]);

/** Follow the events at a path until the stream ends; return the function that stops it. A lost connection is made again,
 * and goes on after the last event that arrived. */
export function follow(path: string, { isOver, onEvents, onState, onError }: Following): () => void {
  const stop = new AbortController();
  void (async () => {
    let last = "";
    let delay = FIRST_DELAY_MS;
    while (!stop.signal.aborted) {
      const silent = new AbortController();
      try {
        const headers: Record<string, string> = { Accept: "text/event-stream", "X-Gloveport": keptKey() };
        if (last) headers["Last-Event-ID"] = last;
        const response = await fetch(path, { headers, credentials: "same-origin", signal: AbortSignal.any([stop.signal, silent.signal]) });
        if (!response.ok) throw problemOf(await response.json().catch(() => null), response.status);
        onState?.("live");
        for await (const events of readEvents(response, silent)) {
          delay = FIRST_DELAY_MS;
          last = events.at(-1)?.id ?? last;
          onEvents(events);
        }
        if (!isOver || isOver()) return onState?.("ended");
        throw new Error("the stream ended too early");
      } catch (error) {
        if (stop.signal.aborted) return;
        const problem = asApiError(error);
        if (REFUSALS.has(problem.status)) return onError?.(problem);
        onState?.("lost");
        await pause(delay);
        delay = Math.min(delay * 2, MAX_DELAY_MS);
      }
    }
  })();
  return () => stop.abort();
}

/** Wait, but no longer than until the browser has a connection again. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      resolve();
    }
    window.addEventListener("online", done);
  });
}

/** The events of an answer, as many at once as arrived together. A connection over which nothing comes is given up. */
async function* readEvents(response: Response, silent: AbortController): AsyncGenerator<ServerEvent[]> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (reader) {
    const timer = setTimeout(() => silent.abort(), MAX_SILENCE_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop() ?? "";
    const events = frames.map(parseFrame).filter((event) => event !== null);
    if (events.length) yield events;
  }
}

function parseFrame(frame: string): ServerEvent | null {
  const found: Record<string, string> = {};
  for (const line of frame.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) found[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, "");
  }
  if (found["data"] === undefined) return null;
  return { kind: found["event"] ?? "message", id: found["id"] ?? "", data: JSON.parse(found["data"]) };
}
