// Short notices about what came of an action.
import { useSyncExternalStore } from "react";
import { asApiError } from "../api";
import { Visible } from "./visible";

interface Toast {
  id: number;
  text: string;
  hint: string;
  failed: boolean;
}

const SHOWN_MS = 6_000;
let toasts: readonly Toast[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function setToasts(now: readonly Toast[]): void {
  toasts = now;
  listeners.forEach((listener) => listener());
}

function show(text: string, hint: string, failed: boolean): void {
  const id = nextId++;
  setToasts([...toasts.slice(-3), { id, text, hint, failed }]);
  setTimeout(() => setToasts(toasts.filter((one) => one.id !== id)), failed ? SHOWN_MS * 2 : SHOWN_MS);
}

/** Say that something was done. */
export const say = (text: string) => show(text, "", false);

/** Say that something failed, and what to do about it. */
export function sayFailed(error: unknown): void {
  const { message, hint } = asApiError(error);
  show(message, hint ?? "", true);
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((one) => (
        <div key={one.id} className={one.failed ? "toast failed" : "toast"}>
          <strong>{one.failed ? "✕" : "✓"}</strong>
          <div>
            <Visible text={one.text} limit={400} />
            {one.hint && <p className="quiet"><Visible text={one.hint} limit={400} /></p>}
          </div>
          <button className="plain" aria-label="Dismiss" onClick={() => setToasts(toasts.filter((other) => other.id !== one.id))}>×</button>
        </div>
      ))}
    </div>
  );
}
