// One run: its program on the left; on the right its calls, and what it gave back. What is chosen stands in the address.
import { useEffect, useMemo } from "react";
import { get } from "../api";
import { Badge } from "../shell/badge";
import { CodeView } from "../shell/code-view";
import { useKeys } from "../shell/keys";
import { useLoaded } from "../shell/loaded";
import { Link, navigate, pathArgument, usePath, useQuery } from "../shell/router";
import { Screen } from "../shell/screen";
import { Empty, Loading, Problem } from "../shell/states";
import { Ago, duration, useNow } from "../shell/time";
import { Visible } from "../shell/visible";
import type { RunDetails, RunPage } from "../types";
import { Actions } from "./actions";
import { CallDetails } from "./call-details";
import { CallsPanel } from "./calls-panel";
import { linesOfTools } from "./lines";
import { Emitted, Logs, Result, UsageLine } from "./output";
import { PlanView } from "./plan-view";
import { stateOf } from "./rows";
import { useRun, type LiveRun } from "./use-run";
import "./run.css";

export default function RunScreen() {
  const id = pathArgument(usePath(), "/runs/");
  const live = useRun(id);
  const { details, error, reload } = live;
  const short = details?.run.run.slice(0, 8) ?? id.slice(0, 8);
  return (
    <Screen title={`Run ${short}`} windowTitle={details ? `${details.run.status} · ${short}` : short} wide actions={details && <Actions details={details} reload={reload} />}>
      {error && (error.status === 404 && !details ? <NoRun id={id} /> : <Problem error={error} retry={reload} />)}
      {details ? <Details live={live} details={details} /> : !error && <Loading />}
    </Screen>
  );
}

/** An address with the beginning of an id, as lists show it, leads to the run. */
function NoRun({ id }: { id: string }) {
  const found = useLoaded(`runs ${id}`, (signal) => get<RunPage>("/v1/runs", { query: { search: id.slice(0, 100), limit: 2 }, signal }));
  const [first, second] = found.data?.runs.filter((run) => run.run.startsWith(id.toLowerCase())) ?? [];
  useEffect(() => {
    if (first && !second) navigate(`/runs/${first.run}${location.search}`, { replace: true });
  }, [first, second]);
  if (found.loading || (first && !second)) return <Loading />;
  return (
    <Empty title={second ? "More than one run begins like this" : "There is no such run"}>
      <Link href={second ? `/runs?search=${encodeURIComponent(id)}` : "/runs"}>{second ? "Show them" : "Show all runs"}</Link>
    </Empty>
  );
}

function Details({ live, details }: { live: LiveRun; details: RunDetails }) {
  const { run, code, outcome } = details;
  const calls = outcome.calls;
  const now = useSeconds(details);
  const [query, change] = useQuery();
  const call = numberIn(query, "call");
  const line = numberIn(query, "line");
  const lines = useMemo(() => linesOfTools(code, calls.map((one) => one.tool)), [code, calls]);
  const chosen = call === null ? null : (calls.find((one) => one.id === call) ?? live.fresh.find((one) => one.id === call) ?? null);
  const clickable = useMemo(() => new Set([...lines.values()].flat()), [lines]);
  const marked = useMemo(() => new Set(line === null ? [] : calls.filter((one) => lines.get(one.tool)?.includes(line)).map((one) => one.id)), [line, lines, calls]);
  const chosenLines = useMemo(() => new Set(chosen ? lines.get(chosen.tool) : line === null ? [] : [line]), [chosen, lines, line]);
  const chooseCall = useMemo(() => (id: number | null) => change({ call: id === null ? null : String(id), line: null }), [change]);
  const chooseLine = (at: number) => {
    const first = calls.find((one) => lines.get(one.tool)?.includes(at));
    change(at === line ? { line: null, call: null } : { line: String(at), call: first && calls.filter((one) => lines.get(one.tool)?.includes(at)).length === 1 ? String(first.id) : null });
  };
  useKeys({ Escape: () => change({ call: null, line: null }) });
  const failure = outcome.error;
  const failed = failure?.line ? { line: failure.line, note: <><strong><Visible text={failure.message} limit={400} /></strong>{failure.hint && <p><Visible text={failure.hint} limit={400} /></p>}</> } : null;
  return (
    <>
      <Facts live={live} details={details} now={now} />
      <div className="run-columns">
        <section className="card program" aria-label="Program" tabIndex={0}>
          <CodeView code={code} language={run.language} chosen={chosenLines} clickable={clickable} onLine={chooseLine} failed={failed} />
        </section>
        <div className="run-right">
          {outcome.plan && <PlanView plan={outcome.plan} onLine={chooseLine} />}
          <Result run={run} outcome={outcome} />
          {calls.length + live.fresh.length > 0 && (
            <CallsPanel calls={calls} fresh={live.fresh} now={now} chosen={call} marked={marked} onChoose={chooseCall} />
          )}
          {chosen && (
            <CallDetails call={chosen} state={stateOf(chosen)} reply={live.replies.get(chosen.id)} lines={lines.get(chosen.tool) ?? []} onLine={chooseLine} onClose={() => chooseCall(null)} />
          )}
          <Logs logs={live.logs} />
          <Emitted emitted={live.emitted} />
          <UsageLine outcome={outcome} run={run} />
        </div>
      </div>
    </>
  );
}

export function Facts({ live, details, now }: { live: LiveRun; details: RunDetails; now: number }) {
  const { run } = details;
  return (
    <p className="facts run-facts">
      <Badge status={run.status} />
      <span><Visible text={run.agent} /></span>
      <span className="quiet">{run.language} on {run.engine}</span>
      <span className="quiet"><Ago time={run.started} /></span>
      <span className="quiet">{duration(run.seconds ?? now)}</span>
      {live.link === "lost" && <span className="urgent" role="status">Connection lost, trying again…</span>}
    </p>
  );
}

/** Seconds from the start of a run to its end, or to now. */
export function useSeconds({ run, outcome }: RunDetails): number {
  const isOpen = run.status === "running" || run.status === "waiting";
  const now = useNow(isOpen ? 250 : 3_600_000);
  const last = Math.max(0, ...outcome.calls.map((call) => call.started + (call.seconds ?? 0)));
  if (isOpen) return Math.max(last, (now - Date.parse(run.started)) / 1000);
  return Math.max(last, outcome.usage.wall_seconds, 0.001);
}

export function numberIn(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
}
