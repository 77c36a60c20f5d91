// The address in the browser decides what is shown: every state that somebody could want to share is in it.
import { useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from "react";

const listeners = new Set<() => void>();
const changed = () => listeners.forEach((listener) => listener());
window.addEventListener("popstate", changed);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Go to an address of these pages. */
export function navigate(to: string, { replace = false } = {}): void {
  if (to === location.pathname + location.search + location.hash) return;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  if (!replace) window.scrollTo(0, 0);
  changed();
}

export function usePath(): string {
  return useSyncExternalStore(subscribe, () => location.pathname);
}

/** The query of the address, and the function that changes members of it; an empty value takes one away. */
export function useQuery(): [URLSearchParams, (change: Record<string, string | null>) => void] {
  const text = useSyncExternalStore(subscribe, () => location.search);
  return [new URLSearchParams(text), changeQuery];
}

export function changeQuery(change: Record<string, string | null>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(change)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const rest = query.toString();
  navigate(location.pathname + (rest ? `?${rest}` : "") + location.hash, { replace: true });
}

/** A link within the pages. Opening it elsewhere (a new tab, a new window) stays with the browser. */
export function Link({ href, onClick, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(href);
  };
  return <a {...rest} href={href} onClick={follow} />;
}

/** What comes after a prefix in the path, decoded: the id or the address that a page is about. */
export function pathArgument(path: string, prefix: string): string {
  try {
    return decodeURIComponent(path.slice(prefix.length));
  } catch {
    return path.slice(prefix.length);
  }
}
