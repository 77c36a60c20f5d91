// The calls that wait, one group for each run.
import { useState } from "react";
import { post } from "../api";
import { Confirm } from "../shell/dialog";
import { Link } from "../shell/router";
import { say } from "../shell/toasts";
import { Ago } from "../shell/time";
import { Visible, visibleText } from "../shell/visible";
import type { Approval } from "../types";

export interface Group {
  run: string;
  agent: string;
  requests: Approval[];
}

/** The calls by their run, the one that has waited longest first. */
export function groupsOf(waiting: Approval[]): Group[] {
  const groups = new Map<string, Group>();
  for (const one of [...waiting].sort((a, b) => a.asked - b.asked)) {
    const group = groups.get(one.run);
    if (group) group.requests.push(one);
    else groups.set(one.run, { run: one.run, agent: one.agent, requests: [one] });
  }
  return [...groups.values()];
}

interface Props {
  groups: Group[];
  chosen: string;
  onAnswered: (ids: string[]) => void;
}

export function GroupList({ groups, chosen, onAnswered }: Props) {
  return (
    <div className="groups">
      {groups.map((group) => (
        <section key={group.run} className="card" aria-label={`Calls of the run ${group.run.slice(0, 8)}`}>
          <header>
            <h2><Link href={`/runs/${group.run}`}>Run {group.run.slice(0, 8)}</Link></h2>
            <span className="quiet small"><Visible text={group.agent} limit={40} /></span>
            <span className="spread" />
            {group.requests.length > 1 && <AnswerAll group={group} onAnswered={onAnswered} />}
          </header>
          <ul>
            {group.requests.map((one) => (
              <li key={one.id}>
                <Link className="request" href={`/approvals/${one.id}`} aria-current={one.id === chosen ? "true" : undefined} data-request={one.id}>
                  <span className="request-tool">{visibleText(one.tool)}</span>
                  <span className="quiet small"><Ago time={one.asked} /></span>
                  <span className="request-args quiet">{visibleText(JSON.stringify(one.args).slice(0, 120))}</span>
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

/** One answer for all calls of a run that wait now: each with the digest that was shown. */
function AnswerAll({ group, onAnswered }: { group: Group; onAnswered: (ids: string[]) => void }) {
  const [asked, setAsked] = useState<{ approve: boolean; requests: Approval[] } | null>(null);
  const answer = async () => {
    if (!asked) return;
    const requests = Object.fromEntries(asked.requests.map((one) => [one.id, one.digest]));
    await post("/v1/approvals/answer", { approve: asked.approve, requests });
    say(`${asked.requests.length} calls ${asked.approve ? "approved" : "denied"}.`);
    onAnswered(Object.keys(requests));
  };
  const ask = (approve: boolean) => setAsked({ approve, requests: group.requests });
  return (
    <>
      <span className="actions">
        <button onClick={() => ask(true)}>Approve all {group.requests.length}</button>
        <button onClick={() => ask(false)}>Deny all</button>
      </span>
      {asked && (
        <Confirm
          title={asked.approve ? `Approve ${asked.requests.length} calls?` : `Deny ${asked.requests.length} calls?`}
          verb={asked.approve ? "Approve all" : "Deny all"}
          destructive={!asked.approve}
          onConfirm={answer}
          onClose={() => setAsked(null)}
        >
          <ol className="asked-calls">
            {asked.requests.map((one) => <li key={one.id}><code><Visible text={`${one.tool}(${JSON.stringify(one.args)})`} limit={600} /></code></li>)}
          </ol>
        </Confirm>
      )}
    </>
  );
}
