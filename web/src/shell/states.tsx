// What a page shows instead of its content: nothing yet, nothing at all, or an error.
import type { ReactNode } from "react";
import type { ApiError } from "../api";
import { JsonTree } from "./json-tree";
import { Visible } from "./visible";

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children && <div className="quiet">{children}</div>}
    </div>
  );
}

/** Shown after a moment only: most answers come sooner. */
export function Loading() {
  return <p className="loading quiet" role="status">Loading…</p>;
}

export function Problem({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div className="problem" role="alert">
      <p><strong><Visible text={error.message} /></strong></p>
      {error.hint && !error.hint.includes(" /v1/") && <p><Visible text={error.hint} /></p>}
      <p className="quiet">
        <code>{error.code}</code>
        {error.status > 0 && ` · status ${error.status}`}
      </p>
      {error.data !== null && <JsonTree value={error.data} />}
      {retry && <button onClick={retry}>Try again</button>}
    </div>
  );
}
