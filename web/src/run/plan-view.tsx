// The plan of a run: the writes that it would make, held back until a person approves exactly these.
import { useState } from "react";
import { post } from "../api";
import { Confirm } from "../shell/dialog";
import { JsonTree } from "../shell/json-tree";
import { navigate } from "../shell/router";
import { isApprover, useMe } from "../shell/session";
import { Countdown } from "../shell/time";
import { Visible } from "../shell/visible";
import type { Outcome, Plan } from "../types";

export function PlanView({ plan, onLine }: { plan: Plan; onLine?: (line: number) => void }) {
  const [asks, setAsks] = useState(false);
  const me = useMe();
  const apply = async () => {
    const outcome = await post<Outcome>(`/v1/runs/${encodeURIComponent(plan.run)}/apply`, { wait: false });
    navigate(`/runs/${outcome.run}`);
  };
  return (
    <section className="card panel needs-you" aria-label="Plan">
      <div className="panel-head">
        <h2>Plan: {plan.writes.length} {plan.writes.length === 1 ? "write" : "writes"}</h2>
        <span className="small"><Countdown until={plan.expires} /></span>
        <span className="spread" />
        {isApprover(me) && plan.writes.length > 0 && <button className="primary" onClick={() => setAsks(true)}>Approve and run</button>}
      </div>
      <ol className="plan-writes">
        {plan.writes.map((write) => (
          <li key={write.call}>
            <p>
              <strong><Visible text={write.tool} /></strong>{" "}
              {write.line !== null && (onLine ? <button className="plain line-link" onClick={() => onLine(write.line ?? 1)}>line {write.line}</button> : <span className="quiet small">line {write.line}</span>)}
            </p>
            <JsonTree value={write.args} />
            {write.unknown.length > 0 && <p className="small urgent">Made up in the plan, so not known yet: <Visible text={write.unknown.join(", ")} /></p>}
            {write.after.length > 0 && <p className="small urgent">Could send out what it has read before: <Visible text={write.after.join("; ")} /></p>}
          </li>
        ))}
      </ol>
      {plan.notes.map((note) => <p key={note} className="quiet small"><Visible text={note} /></p>)}
      {asks && (
        <Confirm title="Approve this plan?" verb={`Approve ${plan.writes.length} ${plan.writes.length === 1 ? "write" : "writes"}`} onConfirm={apply} onClose={() => setAsks(false)}>
          <p>The program runs anew. Exactly these writes are approved; any other one asks.</p>
        </Confirm>
      )}
    </section>
  );
}
