// One call that waits: exactly what would be sent, why it asks, and the answers that there are.
import { useId, useRef, useState, type ReactNode } from "react";
import { ApiError, post } from "../api";
import { Confirm } from "../shell/dialog";
import { useKeys } from "../shell/keys";
import { Link } from "../shell/router";
import { Countdown } from "../shell/time";
import { say, sayFailed } from "../shell/toasts";
import { Visible } from "../shell/visible";
import type { Approval, Json } from "../types";
import { ArgumentsEditor } from "./arguments-editor";
import { Changes } from "./changes";
import { ExactArguments } from "./exact-arguments";

interface Props {
  approval: Approval;
  readOnly?: boolean;
  onAnswered: (ids: string[]) => void;
}

type Scope = "once" | "run" | "always";

const MIN_SHOWN_MS = 400; // a key that was meant for the call before is not an answer to this one

export function AnswerForm({ approval, readOnly = false, onAnswered }: Props) {
  const [scope, setScope] = useState<Scope>("once");
  const [edited, setEdited] = useState<{ [name: string]: Json } | null>(null);
  const [edits, setEdits] = useState(false);
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const answer = async (approve: boolean, more: { [name: string]: Json } = {}) => {
    if (busy || readOnly) return;
    setBusy(true);
    const requests = { [approval.id]: approval.digest };
    const given = approve ? { scope, ...(edited ? { args: edited } : {}), ...more } : { reason };
    try {
      await post("/v1/approvals/answer", { approve, requests, ...given });
      say(`${approval.tool} ${approve ? "approved" : "denied"}.${approval.held ? "" : " Its run goes on when somebody resumes it."}`);
      onAnswered([approval.id]);
    } catch (error) {
      sayFailed(error);
      setBusy(false);
    }
  };
  const shown = useRef(performance.now());
  const byKey = (approve: boolean, repeats: boolean) => {
    if (!repeats && !edits && performance.now() - shown.current > MIN_SHOWN_MS) void answer(approve);
  };
  useKeys({ y: (repeats) => byKey(true, repeats), n: (repeats) => byKey(false, repeats), e: () => readOnly || setEdits(true) });
  return (
    <section className="card answer" aria-label={`Call of ${approval.tool}`}>
      <header>
        <h2><Visible text={approval.tool} /></h2>
        {!readOnly && <span className="small"><Countdown until={approval.expires} /></span>}
      </header>
      <p className="small quiet">
        <Visible text={approval.agent} /> asks in <Link href={`/runs/${approval.run}${approval.line ? `?line=${approval.line}` : ""}`}>run {approval.run.slice(0, 8)}{approval.line ? `, line ${approval.line}` : ""}</Link>
      </p>
      <Why approval={approval} />
      <h3>{approval.is_unknown ? "What may have been sent" : "Exactly what will be sent"}</h3>
      {edits ? (
        <ArgumentsEditor args={edited ?? approval.args} onDone={(args) => { setEdited(args); setEdits(false); }} onCancel={() => setEdits(false)} />
      ) : (
        <ExactArguments args={edited ?? approval.args} />
      )}
      {edited && !edits && <Changes before={approval.args} after={edited} title="What you have changed" />}
      {!readOnly && !edits && (
        <Answers approval={approval} scope={scope} setScope={setScope} reason={reason} setReason={setReason} busy={busy} isEdited={edited !== null}
          onAnswer={(approve, more) => void answer(approve, more)} onEdit={() => setEdits(true)} onReset={() => setEdited(null)} />
      )}
    </section>
  );
}

function Why({ approval }: { approval: Approval }) {
  return (
    <>
      {approval.is_unknown && <Note title="Nobody knows whether this call was made.">Its host ended before it got the answer. Approve to make it again, or say that it has happened.</Note>}
      {approval.reason && <p className="small"><Visible text={approval.reason} />{approval.rule && <span className="quiet"> · <Visible text={approval.rule} /></span>}</p>}
      {approval.reads.length > 0 && (
        <Note title={approval.reads.every((read) => !read.run || read.run === approval.run) ? "It could send out what this run has read:" : "It could send out what this agent has read, also in other runs:"}>
          <ul>
            {approval.reads.map((read) => (
              <li key={`${read.tool} ${read.at}`}>
                <code><Visible text={read.tool} /></code> {read.labels.map((label) => <span key={label} className="tag accent">{label}</span>)}{" "}
                <span className="quiet small">{new Date(read.at * 1000).toLocaleTimeString()}{read.run && read.run !== approval.run ? ` in run ${read.run.slice(0, 8)}` : ""}</span>
              </li>
            ))}
          </ul>
        </Note>
      )}
      {approval.advice.length > 0 && (
        <Note title="Look at the program here; it may do more than it shows:">
          <ul>{approval.advice.map((line) => <li key={line}><Visible text={line} /></li>)}</ul>
        </Note>
      )}
      {!approval.held && approval.state === "waiting" && <Note title="The server that ran this has ended.">Answer it, then resume <Link href={`/runs/${approval.run}`}>its run</Link>: it goes on here, and makes no write twice.</Note>}
      {approval.problem && <Note title="The last answer was not accepted:"><Visible text={approval.problem} /></Note>}
    </>
  );
}

function Note({ title, children }: { title: string; children: ReactNode }) {
  return <div className="note"><strong>{title}</strong><div>{children}</div></div>;
}

interface AnswersProps {
  approval: Approval;
  scope: Scope;
  setScope: (scope: Scope) => void;
  reason: string;
  setReason: (reason: string) => void;
  busy: boolean;
  isEdited: boolean;
  onAnswer: (approve: boolean, more?: { [name: string]: Json }) => void;
  onEdit: () => void;
  onReset: () => void;
}

function Answers({ approval, scope, setScope, reason, setReason, busy, isEdited, onAnswer, onEdit, onReset }: AnswersProps) {
  const id = useId();
  const [says, setSays] = useState(false);
  const onlyOnce = approval.reads.length > 0 || approval.is_unknown; // then the answer is for this call alone
  return (
    <>
      {!onlyOnce && !isEdited && (
        <fieldset className="scopes">
          <legend className="small quiet">An approval is for</legend>
          {SCOPES.map(([value, text]) => (
            <label key={value}><input type="radio" name={id} checked={scope === value} onChange={() => setScope(value)} /> {text}</label>
          ))}
          {scope !== "once" && <p className="small urgent">Covers calls of this tool by {approval.agent} with arguments of the shape <code><Visible text={approval.shape} limit={300} /></code>, whatever the values are.</p>}
        </fieldset>
      )}
      <input className="reason" aria-label="Reason, if you deny" placeholder="Reason, if you deny (the agent sees it)" value={reason} maxLength={2_000} onChange={(event) => setReason(event.target.value)} />
      <div className="actions">
        <button className="primary" disabled={busy} onClick={() => onAnswer(true)}>{approval.is_unknown ? "Make it again" : isEdited ? "Approve as changed" : "Approve"} <kbd>y</kbd></button>
        <button disabled={busy} onClick={() => onAnswer(false)}>Deny <kbd>n</kbd></button>
        {approval.is_unknown && <button disabled={busy} onClick={() => setSays(true)}>It has happened…</button>}
        <span className="spread" />
        {isEdited && <button className="plain" onClick={onReset}>Undo the changes</button>}
        <button disabled={busy} onClick={onEdit}>Edit <kbd>e</kbd></button>
      </div>
      {says && <Happened tool={approval.tool} onClose={() => setSays(false)} onSaid={(value) => onAnswer(true, { happened: true, value })} />}
    </>
  );
}

/** A call that was made although nobody got its answer: the program goes on with what a person says that it returned. */
function Happened({ tool, onClose, onSaid }: { tool: string; onClose: () => void; onSaid: (value: Json) => void }) {
  const id = useId();
  const [text, setText] = useState("");
  const confirm = async () => {
    try {
      onSaid(text.trim() ? (JSON.parse(text) as Json) : null);
    } catch {
      throw new ApiError("bad-value", "this is not JSON yet", 'a text stands in quotes: "like this"');
    }
  };
  return (
    <Confirm title="It has happened" verb="Go on with this" onConfirm={confirm} onClose={onClose}>
      <p>The call of <code><Visible text={tool} limit={200} /></code> is not made again. The program goes on as if it had returned this.</p>
      <label htmlFor={id}>What it returned <span className="quiet">as JSON; empty for nothing</span></label>
      <textarea id={id} rows={3} spellCheck={false} autoFocus value={text} onChange={(event) => setText(event.target.value)} />
    </Confirm>
  );
}

const SCOPES: [Scope, string][] = [
  ["once", "this call"],
  ["run", "calls like this in this run"],
  ["always", "calls like this, always"],
];
