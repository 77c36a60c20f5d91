// Calls one tool as a run of its own: bridge, rules, approvals and record hold as for every program.
import { useId, useState, type FormEvent } from "react";
import { asApiError, post, type ApiError } from "../api";
import { Result } from "../run/output";
import { useRun } from "../run/use-run";
import "../run/run.css";
import { Badge } from "../shell/badge";
import { JsonTree } from "../shell/json-tree";
import { Link, useQuery } from "../shell/router";
import { Problem } from "../shell/states";
import type { Json, Outcome, Schema, ToolRow } from "../types";
import { Fields, initialValue, type Values } from "./schema-form";

export function CallForm({ tool, schema }: { tool: ToolRow; schema: Schema }) {
  const [values, setValues] = useState<Values>(() => initialValue(schema));
  const [asJson, setAsJson] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const [query, change] = useQuery();
  const run = query.get("run");
  const args = asJson === null ? values : parsed(asJson);
  const call = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || args === null) return;
    setBusy(true);
    setError(null);
    try {
      const outcome = await post<Outcome>("/v1/runs", { code: programOf(tool.path), language: "javascript", input: args, wait: false });
      change({ run: outcome.run });
    } catch (failure) {
      setError(asApiError(failure));
    }
    setBusy(false);
  };
  const toggle = () => {
    if (asJson === null) setAsJson(JSON.stringify(values, null, 2));
    else if (args !== null) {
      setValues(args);
      setAsJson(null);
    }
  };
  return (
    <section className="card call-card" aria-label="Call it">
      <form onSubmit={(event) => void call(event)}>
        <header>
          <h2>Call it</h2>
          <button type="button" className="plain" disabled={args === null} onClick={toggle}>{asJson === null ? "As JSON" : "As a form"}</button>
        </header>
        {asJson === null ? <Fields schema={schema} values={values} onChange={setValues} /> : <JsonArguments text={asJson} onChange={setAsJson} wrong={args === null} />}
        <div className="actions">
          <button className="primary" type="submit" disabled={busy || args === null}>Call</button>
          <span className="quiet small">{tool.writes ? "It writes. Rules and approvals hold, and the call is recorded." : "Rules hold, and the call is recorded."}</span>
        </div>
      </form>
      {error && <Problem error={error} />}
      {run && /^[0-9a-f]{32}$/.test(run) && <CallRun key={run} run={run} />}
    </section>
  );
}

function JsonArguments({ text, onChange, wrong }: { text: string; onChange: (text: string) => void; wrong: boolean }) {
  const id = useId();
  return (
    <div className="arguments-json">
      <textarea aria-label="Arguments as JSON" spellCheck={false} aria-describedby={wrong ? id : undefined} aria-invalid={wrong} rows={Math.min(20, Math.max(5, text.split("\n").length + 1))} value={text} onChange={(event) => onChange(event.target.value)} />
      {wrong && <p id={id} className="small" role="alert">✕ The arguments are one JSON object.</p>}
    </div>
  );
}

/** What became of the call, as it happens. */
function CallRun({ run }: { run: string }) {
  const live = useRun(run);
  const { details, error, reload } = live;
  if (error) return <Problem error={error} retry={reload} />;
  if (!details) return null;
  const returned = live.replies.get(1);
  return (
    <section className="call-run" aria-label="The call" aria-live="polite">
      <p className="facts"><Badge status={details.run.status} /> <Link href={`/runs/${run}`}>Run {run.slice(0, 8)}</Link></p>
      {details.run.status === "running" && returned?.value !== undefined ? <JsonTree value={returned.value} /> : <Result run={details.run} outcome={details.outcome} />}
    </section>
  );
}

/** The program of the call. The arguments are the input of the run: no text of theirs becomes code. */
function programOf(path: string): string {
  const parts = path.split(".").map((part) => (/^[A-Za-z_$][\w$]*$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`));
  return `return await tools${parts.join("")}(input);`;
}

function parsed(text: string): { [name: string]: Json } | null {
  try {
    const value: unknown = JSON.parse(text || "{}");
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as { [name: string]: Json }) : null;
  } catch {
    return null;
  }
}
