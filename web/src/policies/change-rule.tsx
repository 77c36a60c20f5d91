// A change of the rules, in two steps: the settings file is shown as it would become, and only then written.
import { useId, useState } from "react";
import { asApiError, post, type ApiError } from "../api";
import { Dialog } from "../shell/dialog";
import { Problem } from "../shell/states";
import { say } from "../shell/toasts";
import { Visible } from "../shell/visible";
import type { Rule, Verdict } from "./rules";

/** What is asked for: a rule that is there, to be changed or removed, or a new one with what is known of it. */
export interface Wanted {
  rule: Partial<Rule> & { pattern: string };
  isNew: boolean;
  removes: boolean;
}

interface Change {
  verdict: Verdict;
  pattern: string;
  agent: string;
  when?: string;
  reason?: string;
  remove: boolean;
  file?: "user" | "project";
}

interface Shown {
  file: string;
  diff: string[];
  changes: boolean;
  digest: string;
  warnings: string[];
}

interface Props {
  wanted: Wanted;
  agents: string[];
  onClose: () => void;
  onMade: () => void;
}

export function ChangeRule({ wanted, agents, onClose, onMade }: Props) {
  const [change, setChange] = useState(() => changeOf(wanted));
  const [shown, setShown] = useState<Shown | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const send = async (digest?: string) => {
    setBusy(true);
    setError(null);
    try {
      const found = await post<Shown>("/v1/policies", bodyOf(change, digest));
      if (!digest) return setShown(found);
      say(wanted.removes ? "Removed: the rule has no effect any more." : "Written: the rule is in force.");
      found.warnings.forEach(say);
      onMade();
      onClose();
    } catch (failure) {
      setError(asApiError(failure));
      if (digest) setShown(null); // it is not what was shown any more
    } finally {
      setBusy(false);
    }
  };
  const title = wanted.removes ? "Remove a rule" : wanted.isNew ? "Add a rule" : "Change a rule";
  const next = shown ? (
    <>
      <button onClick={() => setShown(null)}>Back</button>
      <button className={wanted.removes ? "destructive" : "primary"} disabled={busy || !shown.changes} onClick={() => void send(shown.digest)}>Write the file</button>
    </>
  ) : (
    <button className="primary" disabled={busy || !change.pattern.trim()} onClick={() => void send()}>Show the change</button>
  );
  return (
    <Dialog title={title} onClose={onClose} actions={next} wide={shown !== null}>
      {shown ? <Diff shown={shown} /> : <Form change={change} wanted={wanted} agents={agents} onChange={(more) => setChange({ ...change, ...more })} />}
      {error && <Problem error={error} />}
    </Dialog>
  );
}

function changeOf({ rule, removes }: Wanted): Change {
  const { verdict = "ask", pattern, agent = "*", when, reason, file } = rule;
  return { verdict, pattern, agent, when: when ?? "", reason: reason ?? "", remove: removes, ...(file ? { file } : {}) };
}

function bodyOf({ when, reason, agent, ...rest }: Change, digest: string | undefined) {
  const given = { agent: agent.trim() || "*", when: when?.trim(), reason: reason?.trim() };
  const told = Object.fromEntries(Object.entries(given).filter(([, text]) => text));
  return { ...rest, pattern: rest.pattern.trim(), ...told, ...(digest ? { digest } : {}) };
}

const VERDICTS: [Verdict, string][] = [
  ["allow", "make the call at once"],
  ["ask", "a person decides each time"],
  ["deny", "refuse the call"],
];

interface FormProps {
  change: Change;
  wanted: Wanted;
  agents: string[];
  onChange: (more: Partial<Change>) => void;
}

function Form({ change, wanted, agents, onChange }: FormProps) {
  const id = useId();
  if (wanted.removes)
    return <p>The rule <strong>{change.verdict}</strong> <code><Visible text={change.pattern} limit={300} /></code> is taken out of its file. You see the change first.</p>;
  const isFixed = !wanted.isNew; // another pattern, agent or condition would be another rule
  return (
    <div className="rule-form">
      <fieldset>
        <legend>Verdict</legend>
        {VERDICTS.map(([verdict, meaning]) => (
          <label key={verdict}>
            <input type="radio" name={`${id}-verdict`} checked={change.verdict === verdict} onChange={() => onChange({ verdict })} />{" "}
            {verdict} <span className="quiet">{meaning}</span>
          </label>
        ))}
      </fieldset>
      <label htmlFor={`${id}-pattern`}>Tools <span className="quiet">such as <code>shop.orders.*</code></span></label>
      <input id={`${id}-pattern`} className="mono" spellCheck={false} readOnly={isFixed} value={change.pattern} onChange={(event) => onChange({ pattern: event.target.value })} />
      <label htmlFor={`${id}-agent`}>Agent</label>
      <input id={`${id}-agent`} list={`${id}-agents`} spellCheck={false} readOnly={isFixed} value={change.agent} onChange={(event) => onChange({ agent: event.target.value })} />
      <datalist id={`${id}-agents`}>{["*", ...agents].map((name) => <option key={name} value={name} />)}</datalist>
      <label htmlFor={`${id}-when`}>Only when <span className="quiet">a condition on the arguments, such as <code>args.amount &gt; 100</code></span></label>
      <input id={`${id}-when`} className="mono" spellCheck={false} readOnly={isFixed} value={change.when} onChange={(event) => onChange({ when: event.target.value })} />
      <label htmlFor={`${id}-reason`}>Reason <span className="quiet">shown with the decision</span></label>
      <input id={`${id}-reason`} value={change.reason} onChange={(event) => onChange({ reason: event.target.value })} />
      {wanted.isNew && (
        <>
          <label htmlFor={`${id}-file`}>In</label>
          <select id={`${id}-file`} value={change.file ?? ""} onChange={(event) => onChange(event.target.value ? { file: event.target.value as "user" | "project" } : {})}>
            <option value="">the project's settings, if it has any</option>
            <option value="user">your own settings</option>
          </select>
        </>
      )}
    </div>
  );
}

function Diff({ shown }: { shown: Shown }) {
  return (
    <>
      <p className="small"><Visible text={shown.file} limit={300} /></p>
      {shown.changes ? (
        <pre className="diff" tabIndex={0} aria-label="The change of the file">
          {shown.diff.map((line, at) => <span key={at} className={/^(\+(?!\+\+)|-(?!--))/.test(line) ? (line[0] === "+" ? "added" : "taken") : "quiet"}><Visible text={line} limit={500} />{"\n"}</span>)}
        </pre>
      ) : (
        <p>The file is like this already.</p>
      )}
      {shown.warnings.map((warning) => <p key={warning} className="note"><Visible text={warning} limit={400} /></p>)}
    </>
  );
}
