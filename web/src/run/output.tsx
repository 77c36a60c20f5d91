// What a run gave back: its result or error, its logs, what it emitted, and what it used.
import { useEffect, useState } from "react";
import { post } from "../api";
import { JsonTree } from "../shell/json-tree";
import { Link } from "../shell/router";
import { runsPrograms, useMe } from "../shell/session";
import { duration } from "../shell/time";
import { sayFailed } from "../shell/toasts";
import { Visible } from "../shell/visible";
import type { Failure, Json, LogLine, Outcome, Run } from "../types";

const MAX_LOG_LINES = 500;
const MAX_HEADING_CHARS = 600;
const ANSWER_TAKEN_MS = 5_000;

/** What came of a run so far. */
export function Result({ run, outcome }: { run: Run; outcome: Outcome }) {
  if (run.status === "waiting" && outcome.waiting.length === 0) return <Answered run={run} />;
  if (outcome.waiting.length > 0) return <Waiting waiting={outcome.waiting} />;
  if (outcome.error) return <FailureCard failure={outcome.error} />;
  if (run.status === "interrupted") return <Interrupted run={run} />;
  if (run.status !== "completed") return null;
  return (
    <section className="card panel" aria-label="Result">
      <h2>Result {outcome.plan && <span className="quiet">as planned, with made-up results of the writes</span>}</h2>
      <JsonTree value={outcome.value} />
      {outcome.warnings.map((warning) => <p key={warning} className="small quiet"><Visible text={warning} /></p>)}
    </section>
  );
}

function Waiting({ waiting }: { waiting: string[] }) {
  const [only] = waiting;
  const href = waiting.length === 1 && only ? `/approvals/${encodeURIComponent(only)}` : "/approvals";
  return (
    <section className="card panel needs-you" aria-label="Waiting">
      <h2>{waiting.length > 1 ? `${waiting.length} calls wait for a person` : "A call waits for a person"}</h2>
      <p>The run goes on when somebody has answered.</p>
      <p><Link className="button primary" href={href}>Look and answer</Link></p>
    </section>
  );
}

/** Its host goes on within a second. If it has ended meanwhile, somebody has to resume the run. */
function Answered({ run }: { run: Run }) {
  const me = useMe();
  const resume = () => void post(`/v1/runs/${encodeURIComponent(run.run)}/resume`).catch(sayFailed);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), ANSWER_TAKEN_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!isLate) return null;
  return (
    <section className="card panel needs-you" aria-label="Answered">
      <h2>Answered, and not going on</h2>
      <p>The server that ran it has ended since. {runsPrograms(me) ? "Resume it: no write is made twice." : "An agent or an admin can resume it."}</p>
      {runsPrograms(me) && <p><button className="primary" onClick={resume}>Resume</button></p>}
    </section>
  );
}

function Interrupted({ run }: { run: Run }) {
  return (
    <section className="card panel" aria-label="Interrupted">
      <h2>Interrupted</h2>
      <p>Its process ended before the run did. {run.obstacle ? <Visible text={run.obstacle} /> : "Resume it: no write is made twice."}</p>
    </section>
  );
}

export function FailureCard({ failure }: { failure: Failure }) {
  return (
    <section className="card panel failure" aria-label="Error" role="alert">
      <h2><span aria-hidden="true">✕ </span><Visible text={failure.message} limit={MAX_HEADING_CHARS} /></h2>
      {failure.hint && <p><Visible text={failure.hint} /></p>}
      {failure.origin !== "tool" && <ForThePerson failure={failure} />}
      {failure.frame && <pre className="frame" tabIndex={0} aria-label="Where it happened"><Visible text={failure.frame} /></pre>}
      <p className="quiet small facts">
        <code>{failure.code}</code>
        {failure.line && <span>line {failure.line}{failure.column ? `, column ${failure.column}` : ""}</span>}
        {failure.tool && <span><Visible text={failure.tool} /></span>}
      </p>
      {failure.cause && <details><summary>Cause</summary><FailureCard failure={failure.cause} /></details>}
    </section>
  );
}

/** What the person who runs Gloveport can do about an error: the program and its agent can't. */
function ForThePerson({ failure }: { failure: Failure }) {
  const source = failure.code === "auth-required" ? failure.tool?.split(".")[0] : undefined;
  return (
    <>
      {failure.setting && <p><span className="quiet">For you: </span><Visible text={failure.setting} /></p>}
      {source && <p><Link className="button" href={`/sources/${encodeURIComponent(source)}`}>Sign in to <Visible text={source} limit={60} /></Link></p>}
    </>
  );
}

export function Logs({ logs }: { logs: LogLine[] }) {
  if (logs.length === 0) return null;
  const shown = logs.slice(-MAX_LOG_LINES);
  return (
    <section className="card panel" aria-label="Logs">
      <h2>Logs <span className="quiet">{logs.length.toLocaleString("en")}</span></h2>
      <ol className="logs" tabIndex={0} aria-label="Lines of the log">
        {shown.map((line, at) => (
          <li key={logs.length - shown.length + at} className={`log-${line.level}`}>
            <span className="log-level">{line.level}</span>
            <Visible text={line.text} />
          </li>
        ))}
      </ol>
    </section>
  );
}

export function Emitted({ emitted }: { emitted: Json[] }) {
  if (emitted.length === 0) return null;
  return (
    <section className="card panel" aria-label="Emitted">
      <h2>Emitted <span className="quiet">{emitted.length}</span></h2>
      {emitted.slice(0, MAX_LOG_LINES).map((value, at) => <JsonTree key={at} value={value} open={1} />)}
    </section>
  );
}

export function UsageLine({ outcome, run }: { outcome: Outcome; run: Run }) {
  const { usage } = outcome;
  if (!usage || run.status === "running" || run.status === "waiting") return null;
  const facts: [string, string][] = [
    ["time", duration(usage.wall_seconds)],
    ["computing", duration(usage.cpu_seconds)],
    ["memory", usage.memory_peak_mb ? `${Math.round(usage.memory_peak_mb)} MB` : "–"],
    ["calls", usage.calls.toLocaleString("en")],
    ["logs", `${usage.log_bytes.toLocaleString("en")} bytes`],
    ["engine", outcome.engine ?? run.engine],
  ];
  return (
    <dl className="usage" aria-label="Usage">
      {facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}
