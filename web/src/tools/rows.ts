// Moves the focus through a list with the arrow keys. Every row, and the search above them, has `data-row`.
import type { KeyboardEvent } from "react";

export function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-row]")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const isField = document.activeElement instanceof HTMLInputElement;
  const next = target(event.key, rows, at, isField);
  if (next) {
    next.focus();
    next.scrollIntoView({ block: "nearest" });
    event.preventDefault();
    return;
  }
  if (isField && event.key === "Enter" && rows[1] instanceof HTMLAnchorElement) {
    rows[1].click();
    event.preventDefault();
  }
  const row = rows[at];
  const isOpen = row?.getAttribute("aria-expanded");
  if ((event.key === "ArrowRight" && isOpen === "false") || (event.key === "ArrowLeft" && isOpen === "true")) {
    row?.click();
    event.preventDefault();
  }
}

function target(key: string, rows: HTMLElement[], at: number, isField: boolean): HTMLElement | undefined {
  if (at < 0) return undefined;
  if (key === "ArrowDown" || (key === "j" && !isField)) return rows[at + 1];
  if (key === "ArrowUp" || (key === "k" && !isField)) return rows[at - 1];
  if (isField) return undefined;
  if (key === "Home") return rows[0];
  return key === "End" ? rows.at(-1) : undefined;
}
