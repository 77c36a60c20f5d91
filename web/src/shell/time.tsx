// Times for people: how long something took, and how long ago it was.
import { useEffect, useState } from "react";

/** A duration in the unit that fits it: 12 ms, 3.4 s, 5 min 10 s, 2 h 5 min. */
export function duration(seconds: number): string {
  if (seconds < 0.000_05) return "< 0.1 ms";
  if (seconds < 0.0095) return `${(seconds * 1000).toFixed(seconds < 0.001 ? 1 : 0)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** How long ago a moment was, in one short word. */
export function ago(then: number, now: number): string {
  const seconds = Math.max(0, (now - then) / 1000);
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(then).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/** The time now, again every so often. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

export function Ago({ time }: { time: string | number }) {
  const then = typeof time === "number" ? time * 1000 : Date.parse(time);
  const now = useNow(10_000);
  return <time dateTime={new Date(then).toISOString()} title={new Date(then).toLocaleString()}>{ago(then, now)}</time>;
}

/** The time that is left until a moment, counted down. */
export function Countdown({ until }: { until: number }) {
  const now = useNow(1_000);
  const left = until - now / 1000;
  return <span className={left < 300 ? "urgent" : ""}>{left > 0 ? `expires in ${duration(left)}` : "expired"}</span>;
}
