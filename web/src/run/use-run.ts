// A run as it happens: its record, loaded again when its events say that it has changed, and what its calls returned.
import { useCallback, useEffect, useRef, useState } from "react";
import { asApiError, get, type ApiError } from "../api";
import { follow, type ServerEvent } from "../events";
import type { Call, Json, LogLine, RunDetails } from "../types";

/** What a call gave back. A large value is not among the events. */
export interface Reply {
  value?: Json;
  error?: Json;
}

export interface LiveRun {
  details: RunDetails | null;
  error: ApiError | null;
  /** Whether events arrive. */
  link: "live" | "lost" | "ended";
  replies: ReadonlyMap<number, Reply>;
  /** Calls that the loaded record lacks so far: those that are not answered wait for their turn, or have just begun. */
  fresh: Call[];
  logs: LogLine[];
  emitted: Json[];
  reload: () => void;
}

const MIN_RELOAD_MS = 300;
const OPEN_RELOAD_MS = 2_000; // a call that begins to wait for a person makes no event
const RELOAD_MS_PER_CALL = 1;
const FINAL = new Set(["completed", "failed", "cancelled"]);

interface Seen {
  replies: Map<number, Reply>;
  made: Map<number, Call>;
  logs: LogLine[];
  emitted: Json[];
}

const nothingSeen = (): Seen => ({ replies: new Map(), made: new Map(), logs: [], emitted: [] });

export function useRun(id: string): LiveRun {
  const [details, setDetails] = useState<RunDetails | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [link, setLink] = useState<LiveRun["link"]>("live");
  const [seen, setSeen] = useState(nothingSeen);
  const [round, setRound] = useState(0);
  const calls = useRef(0);
  useEffect(() => {
    const stop = new AbortController();
    const gathered = nothingSeen();
    let timer = 0;
    let isFinal = false;
    let slow = 0;
    const load = async () => {
      clearTimeout(timer);
      clearTimeout(slow);
      timer = 0;
      try {
        const found = await get<RunDetails>(`/v1/runs/${encodeURIComponent(id)}`, { signal: stop.signal });
        calls.current = found.outcome.calls.length;
        setDetails(found);
        setError(null);
        if (!FINAL.has(found.run.status) && !stop.signal.aborted) slow = window.setTimeout(() => void load(), Math.max(OPEN_RELOAD_MS, calls.current * 4));
      } catch (failure) {
        if (!stop.signal.aborted) setError(asApiError(failure));
      }
    };
    const loadSoon = () => {
      timer ||= window.setTimeout(() => void load(), Math.max(MIN_RELOAD_MS, calls.current * RELOAD_MS_PER_CALL));
    };
    const onEvents = (events: ServerEvent[]) => {
      for (const event of events) {
        gather(gathered, event);
        if (event.kind === "status") isFinal = FINAL.has((event.data as { status: string }).status);
      }
      setSeen({ replies: new Map(gathered.replies), made: gathered.made, logs: [...gathered.logs], emitted: [...gathered.emitted] });
      loadSoon();
    };
    void load();
    const unfollow = follow(`/v1/runs/${encodeURIComponent(id)}/events`, {
      isOver: () => isFinal,
      onEvents,
      onState: (state) => {
        setLink(state);
        if (state === "ended") loadSoon();
      },
    });
    return () => {
      stop.abort();
      unfollow();
      clearTimeout(timer);
      clearTimeout(slow);
    };
  }, [id, round]);
  const reload = useCallback(() => setRound((old) => old + 1), []);
  return { details, error, link, ...liveParts(details, seen), reload };
}

function gather(seen: Seen, { kind, data }: ServerEvent): void {
  const event = data as { call: number; tool: string; args: Json; step?: string; ok: boolean; value?: Json; error?: Json; level: string; text: string };
  if (kind === "log") seen.logs.push({ level: event.level, text: event.text });
  else if (kind === "emit") seen.emitted.push(event.value ?? null);
  else if (kind === "call-ended") seen.replies.set(event.call, replyOf(event));
  else if (kind === "call") seen.made.set(event.call, madeCall(event));
}

function replyOf(event: { value?: Json; error?: Json }): Reply {
  if (event.error !== undefined) return { error: event.error };
  return event.value === undefined ? {} : { value: event.value };
}

function madeCall({ call, tool, args, step }: { call: number; tool: string; args: Json; step?: string }): Call {
  const shown = Array.isArray(args) && args.length === 1 ? (args[0] ?? null) : args;
  const open = { status: "running" as const, started: 0, seconds: null, error: null, origin: null, approval: null, setting: null };
  return { id: call, tool, args: shown, step: step ?? null, ...open };
}

function answered(call: Call, reply: Reply | undefined): Call {
  if (!reply) return { ...call, status: "queued" };
  return { ...call, status: reply.error === undefined ? "ok" : "failed" };
}

/** What the record has, and what only the events have so far. */
function liveParts(details: RunDetails | null, seen: Seen) {
  const isLive = details !== null && !FINAL.has(details.run.status);
  const recorded = new Set(details?.outcome.calls.map((call) => call.id));
  return {
    replies: seen.replies,
    fresh: isLive ? [...seen.made.values()].filter((call) => !recorded.has(call.id)).map((call) => answered(call, seen.replies.get(call.id))) : [],
    logs: isLive || !details ? seen.logs : details.outcome.logs,
    emitted: isLive || !details ? seen.emitted : details.outcome.emitted,
  };
}
