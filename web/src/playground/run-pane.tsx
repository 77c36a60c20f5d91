// The run of the program, live, beside its editor: the same parts as on the page of a run.
import { useEffect, useMemo } from "react";
import { post } from "../api";
import { Facts, numberIn, useSeconds } from "../run";
import { CallDetails } from "../run/call-details";
import { CallsPanel } from "../run/calls-panel";
import { linesOfTools } from "../run/lines";
import { Emitted, Logs, Result, UsageLine } from "../run/output";
import { PlanView } from "../run/plan-view";
import { stateOf } from "../run/rows";
import { useRun, type LiveRun } from "../run/use-run";
import { JsonTree } from "../shell/json-tree";
import { useApprovals } from "../shell/pending";
import { Link, useQuery } from "../shell/router";
import { isApprover, useMe } from "../shell/session";
import { Loading, Problem } from "../shell/states";
import { Countdown } from "../shell/time";
import { sayFailed } from "../shell/toasts";
import { Visible } from "../shell/visible";
import type { Approval, RunDetails } from "../types";
import type { Marks } from "./editor-extensions";

const isOpen = (status: string) => status === "running" || status === "waiting";

const NONE: ReadonlySet<number> = new Set();

interface Props {
  id: string;
  onDetails: (details: RunDetails) => void;
  onMarks: (marks: Marks) => void;
  onLine: (line: number) => void;
}

export function RunPane({ id, onDetails, onMarks, onLine }: Props) {
  const live = useRun(id);
  const { details, error, reload } = live;
  useEffect(() => {
    if (details) onDetails(details);
  }, [details, onDetails]);
  if (error && !details) return <Problem error={error} retry={reload} />;
  return details ? <Shown live={live} details={details} onMarks={onMarks} onLine={onLine} /> : <Loading />;
}

interface ShownProps {
  live: LiveRun;
  details: RunDetails;
  onMarks: (marks: Marks) => void;
  onLine: (line: number) => void;
}

function Shown({ live, details, onMarks, onLine }: ShownProps) {
  const { run, code, outcome } = details;
  const now = useSeconds(details);
  const [query, change] = useQuery();
  const chosen = numberIn(query, "call");
  const call = chosen === null ? null : ([...outcome.calls, ...live.fresh].find((one) => one.id === chosen) ?? null);
  const lines = useMemo(() => linesOfTools(code, outcome.calls.map((one) => one.tool)), [code, outcome.calls]);
  const choose = useMemo(() => (to: number | null) => change({ call: to === null ? null : String(to) }), [change]);
  const failed = outcome.error?.line ?? null;
  useEffect(() => onMarks({ chosen: new Set(call ? lines.get(call.tool) : []), failed }), [call?.tool, lines, failed, onMarks]);
  const me = useMe();
  const approvals = useApprovals();
  const waiting = isApprover(me) ? (approvals?.data ?? []).filter((one) => one.run === run.run && one.state === "waiting") : [];
  const cancel = () => void post(`/v1/runs/${encodeURIComponent(run.run)}/cancel`).catch(sayFailed).finally(live.reload);
  return (
    <>
      <div className="run-head">
        <Facts live={live} details={details} now={now} />
        <span className="spread" />
        {isOpen(run.status) && <button onClick={cancel}>Cancel</button>}
        <Link className="button" href={`/runs/${run.run}`}>Open the run</Link>
      </div>
      {outcome.plan && <PlanView plan={outcome.plan} onLine={onLine} />}
      {waiting.length > 0 ? waiting.map((one) => <WaitingCall key={one.id} approval={one} />) : <Result run={run} outcome={outcome} />}
      {outcome.calls.length + live.fresh.length > 0 && (
        <CallsPanel calls={outcome.calls} fresh={live.fresh} now={now} chosen={call?.id ?? null} marked={NONE} onChoose={choose} />
      )}
      {call && (
        <CallDetails call={call} state={stateOf(call)} reply={live.replies.get(call.id)} lines={lines.get(call.tool) ?? []} onLine={onLine} onClose={() => choose(null)} />
      )}
      <Logs logs={live.logs} />
      <Emitted emitted={live.emitted} />
      <UsageLine outcome={outcome} run={run} />
    </>
  );
}

/** A call that waits for a person, exactly as it would be sent. */
function WaitingCall({ approval }: { approval: Approval }) {
  return (
    <section className="card panel needs-you" aria-label="Waiting">
      <div className="panel-head">
        <h2><code><Visible text={approval.tool} limit={200} /></code> waits for a person</h2>
        <span className="spread" />
        <span className="small quiet"><Countdown until={approval.expires} /></span>
      </div>
      <JsonTree value={approval.args} />
      <p className="small quiet"><Visible text={approval.reason} limit={300} /></p>
      <p><Link className="button primary" href={`/approvals/${encodeURIComponent(approval.id)}`}>Look and answer</Link></p>
    </section>
  );
}
