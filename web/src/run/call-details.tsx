// One call: what it was given, what came back, who allowed it, and how to make it again.
import { Badge } from "../shell/badge";
import { Copy } from "../shell/copy";
import { JsonTree } from "../shell/json-tree";
import { Link } from "../shell/router";
import { duration } from "../shell/time";
import { Visible } from "../shell/visible";
import type { Call } from "../types";
import { curlOfCall } from "./curl";
import type { CallState } from "./rows";
import { ranSeconds } from "./timeline";
import type { Reply } from "./use-run";

interface Props {
  call: Call;
  state: CallState;
  reply: Reply | undefined;
  lines: number[];
  onLine: (line: number) => void;
  onClose: () => void;
}

export function CallDetails({ call, state, reply, lines, onLine, onClose }: Props) {
  return (
    <section className="card call-details" aria-label={`Call ${call.id}`}>
      <header>
        <Badge status={state} />
        <h2><Link href={`/tools/${encodeURIComponent(call.tool)}`}><Visible text={call.tool} /></Link></h2>
        <span className="spread" />
        <Copy text={() => curlOfCall(call, location.origin)} label="Copy as curl" />
        <button className="plain close" aria-label="Close the call" onClick={onClose}>×</button>
      </header>
      <Times call={call} lines={lines} onLine={onLine} />
      {call.approval && <Approved call={call} />}
      <div className="call-values">
        <div>
          <h3>Arguments</h3>
          <JsonTree value={call.args} />
        </div>
        <div>
          <h3>{call.error ? "Error" : "Result"}</h3>
          <Returned call={call} state={state} reply={reply} />
        </div>
      </div>
    </section>
  );
}

function Times({ call, lines, onLine }: { call: Call; lines: number[]; onLine: (line: number) => void }) {
  return (
    <p className="quiet small facts">
      <span>call {call.id}</span>
      {call.step && <span>step <Visible text={call.step} /></span>}
      <span>at {duration(call.started)}</span>
      {call.seconds !== null && <span>took {duration(ranSeconds(call, call.seconds))}</span>}
      {lines.length > 0 && (
        <span>
          {lines.length > 1 ? "named in lines" : "line"}{" "}
          {lines.slice(0, 8).map((line) => <button key={line} className="plain line-link" onClick={() => onLine(line)}>{line}</button>)}
        </span>
      )}
    </p>
  );
}

function Approved({ call }: { call: Call }) {
  const { approval } = call;
  if (!approval) return null;
  return (
    <div className="small">
      <p>
        Answered by <strong><Visible text={approval.approver} /></strong> after {duration(approval.seconds)}
        {approval.scope !== "once" && <> · for {approval.scope === "always" ? "all later calls of this shape" : "this run"}</>}
      </p>
      {approval.asked && <details><summary>The arguments were changed. The program sent:</summary><JsonTree value={approval.asked} /></details>}
    </div>
  );
}

function Returned({ call, state, reply }: { call: Call; state: CallState; reply: Reply | undefined }) {
  if (call.error)
    return (
      <>
        <p><Visible text={call.error} /></p>
        {call.setting && <p className="quiet small"><Visible text={call.setting} /></p>}
        {state === "unknown" && <p className="small">Nobody knows whether this was done. It is not made again without an answer of yours.</p>}
        {reply?.error !== undefined && typeof reply.error === "object" && <JsonTree value={reply.error} open={1} />}
      </>
    );
  if (reply?.value !== undefined) return <JsonTree value={reply.value} />;
  if (call.status === "ok") return <p className="quiet small">{reply ? "The result is too large to show here; the program has it." : "nothing"}</p>;
  if (call.status === "planned") return <p className="quiet small">Held back: the program got a made-up result of the right shape.</p>;
  return <p className="quiet small">not there yet</p>;
}
