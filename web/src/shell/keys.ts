// Keyboard shortcuts: `/` searches, `g` and a letter goes somewhere. None is taken while somebody types.
import { useLayoutEffect, useRef } from "react";
import { navigate } from "./router";

export const PLACES: Record<string, string> = {
  r: "/runs",
  a: "/approvals",
  t: "/tools",
  s: "/sources",
  p: "/playground",
  o: "/policies",
  n: "/agents",
  u: "/audit",
};
const SEQUENCE_MS = 1_200;

/** Whether keys belong to the element: a field, an editor, or anything in an open dialog. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input:not([type=checkbox]), textarea, select, [contenteditable=true], dialog") !== null;
}

/** Do something for a key, as long as nobody types. The action returns false to leave the key to others; it learns whether the
 * key repeats because somebody holds it down. */
export function useKeys(actions: Record<string, (repeats: boolean) => boolean | void>): void {
  const latest = useRef(actions);
  latest.current = actions;
  // Before the browser shows what the keys are for: a key that is pressed at once counts.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
      if (goesSomewhere) return;
      const action = latest.current[event.key];
      if (action && action(event.repeat) !== false) event.preventDefault();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

let goesSomewhere = false; // after `g`, the next key names a place

/** The keys that work on every page. `showHelp` shows them all. */
export function useGlobalKeys(showHelp: () => void): void {
  useLayoutEffect(() => {
    let timer = 0;
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (goesSomewhere) {
        goesSomewhere = false;
        const place = PLACES[event.key];
        if (place) navigate(place);
        event.preventDefault();
      } else if (event.key === "g") {
        goesSomewhere = true;
        clearTimeout(timer);
        timer = window.setTimeout(() => (goesSomewhere = false), SEQUENCE_MS);
      } else if (event.key === "/") {
        const search = document.querySelector<HTMLInputElement>("[data-search]");
        if (search) search.focus();
        else navigate("/tools");
        event.preventDefault();
      } else if (event.key === "?") showHelp();
    };
    document.addEventListener("keydown", pressed, { capture: true });
    return () => document.removeEventListener("keydown", pressed, { capture: true });
  }, [showHelp]);
}
