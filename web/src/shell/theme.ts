// Dark and light follow the system until somebody chooses.
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const KEY = "gloveport-theme";
const listeners = new Set<() => void>();

function chosenTheme(): Theme {
  try {
    const chosen = localStorage.getItem(KEY);
    return chosen === "light" || chosen === "dark" ? chosen : "system";
  } catch {
    return "system"; // storage can be turned off
  }
}

/** Show the pages in the chosen theme. */
export function applyTheme(): void {
  const theme = chosenTheme();
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function chooseTheme(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return;
  }
  applyTheme();
  listeners.forEach((listener) => listener());
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosenTheme);
}
