// Loads something of the API for a component, and again every so often while the page is looked at.
import { useCallback, useEffect, useRef, useState } from "react";
import { asApiError, type ApiError } from "../api";

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  reload: () => void;
}

/** Load with the function whenever the key changes; again every `pollMs`, while the page is hidden every `hiddenMs` or not at
 * all. What was loaded for the key stays when a later load fails. */
export function useLoaded<T>(key: string, load: (signal: AbortSignal) => Promise<T>, pollMs?: number, hiddenMs?: number): Loaded<T> {
  const [state, setState] = useState<{ key: string; data: T | null; error: ApiError | null }>({ key, data: null, error: null });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const refresh = async () => {
      clearTimeout(timer);
      try {
        const data = await latest.current(stop.signal);
        if (!stop.signal.aborted) setState({ key, data, error: null });
      } catch (error) {
        if (!stop.signal.aborted) setState((old) => ({ key, data: old.key === key ? old.data : null, error: asApiError(error) }));
      }
      const pause = document.hidden ? hiddenMs : pollMs;
      if (pause && !stop.signal.aborted) timer = window.setTimeout(tick, pause);
    };
    const tick = () => {
      if (!document.hidden || hiddenMs) void refresh();
    };
    const shown = () => {
      if (pollMs && !document.hidden) void refresh();
    };
    void refresh();
    document.addEventListener("visibilitychange", shown);
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [key, pollMs, hiddenMs, round]);
  const current = state.key === key;
  const reload = useCallback(() => setRound((old) => old + 1), []);
  return {
    data: current ? state.data : null,
    error: current ? state.error : null,
    loading: !current || (state.data === null && state.error === null),
    reload,
  };
}

/** A value as it was the given time ago, for a search that follows what somebody types. */
export function useDelayed<T>(value: T, ms = 150): T {
  const [delayed, setDelayed] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return delayed;
}
