// Notices of the browser about calls that wait, once somebody has asked for them with a click.
import { useEffect, useRef, useState } from "react";
import { ApiError } from "../api";
import { navigate } from "../shell/router";
import { sayFailed } from "../shell/toasts";
import { visibleText } from "../shell/visible";
import type { Approval } from "../types";

const isSupported = () => "Notification" in window;

export function NoticeButton() {
  const [state, setState] = useState(() => (isSupported() ? Notification.permission : "denied"));
  if (state === "granted") return <span className="small quiet">Notices are on</span>;
  if (state === "denied") return null;
  const ask = async () => {
    const given = await Notification.requestPermission();
    setState(given);
    if (given === "denied") sayFailed(new ApiError("not-allowed", "the browser does not allow these pages to show notices"));
  };
  return <button onClick={() => void ask()}>Notify me</button>;
}

/** Show a notice for each call that begins to wait while the page is not looked at. */
export function useNotices(waiting: Approval[] | null): void {
  const known = useRef<Set<string> | null>(null);
  useEffect(() => {
    if (!waiting) return;
    const fresh = waiting.filter((one) => known.current !== null && !known.current.has(one.id));
    known.current = new Set(waiting.map((one) => one.id));
    if (!document.hidden || !isSupported() || Notification.permission !== "granted") return;
    for (const one of fresh.slice(0, 3)) {
      const notice = new Notification("A call waits for you", { body: visibleText(`${one.tool} · ${one.agent}`).slice(0, 200), tag: one.id });
      notice.onclick = () => {
        window.focus();
        navigate(`/approvals/${one.id}`);
      };
    }
  }, [waiting]);
}
