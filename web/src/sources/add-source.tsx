// Adds a source in steps: what was pasted is detected and shown, and only then written to the settings. What opening would run
// is shown word by word before it runs.
import { useId, useState, type FormEvent } from "react";
import { asApiError, post, type ApiError } from "../api";
import { Diff } from "../shell/diff";
import { navigate } from "../shell/router";
import { Problem } from "../shell/states";
import { say } from "../shell/toasts";
import { Visible } from "../shell/visible";
import type { SourceAddition } from "../types";
import { Command } from "./source-card";

interface Options {
  name: string;
  kind: string;
  base_url: string;
  allow_private: boolean;
  writes: boolean;
  trust_annotations: boolean;
  file: string;
}

const NO_OPTIONS: Options = { name: "", kind: "", base_url: "", allow_private: false, writes: false, trust_annotations: false, file: "" };

export function AddSource({ onAdded }: { onAdded: () => void }) {
  const [what, setWhat] = useState("");
  const [options, setOptions] = useState(NO_OPTIONS);
  const [shown, setShown] = useState<SourceAddition | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const change = (next: Partial<Options>) => {
    setOptions({ ...options, ...next });
    setShown(null); // what was shown was for other options
  };
  const ask = async (digest: string | null) => {
    if (busy || !what.trim()) return;
    setBusy(true);
    setError(null);
    try {
      const found = await post<SourceAddition>("/v1/sources", { what, ...given(options), ...(digest ? { digest } : {}) });
      if (found.made) finish(found);
      else setShown(found);
    } catch (failure) {
      setShown(null);
      setError(asApiError(failure));
    }
    setBusy(false);
  };
  const finish = (found: SourceAddition) => {
    say(found.live ? `${found.source.name} is added.` : `${found.source.name} is in the settings. Restart the server to use it.`);
    setShown(null);
    setWhat("");
    setOptions(NO_OPTIONS);
    navigate(`/sources/${encodeURIComponent(found.source.name)}`);
    onAdded();
  };
  const look = (event: FormEvent) => {
    event.preventDefault();
    void ask(null);
  };
  return (
    <section className="card add-source" aria-label="Add a source">
      <form onSubmit={look}>
        <label htmlFor="what"><strong>Add a source</strong> <span className="quiet">a URL, a file of the server, or the command of an MCP server</span></label>
        <div className="field-row">
          <input id="what" className="mono" spellCheck={false} autoComplete="off" placeholder="https://api.example.com/openapi.json" value={what} onChange={(event) => { setWhat(event.target.value); setShown(null); }} />
          <button className={shown ? "" : "primary"} disabled={busy || !what.trim()} type="submit">{busy && !shown ? "Looking…" : "Look at it"}</button>
        </div>
        <MoreOptions options={options} change={change} />
      </form>
      {error && <Problem error={error} />}
      {shown && <Preview shown={shown} busy={busy} onGo={() => void ask(shown.digest)} onCancel={() => setShown(null)} />}
    </section>
  );
}

/** The options that somebody has chosen; the server decides on the rest. */
function given(options: Options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== "" && value !== false));
}

function MoreOptions({ options, change }: { options: Options; change: (next: Partial<Options>) => void }) {
  const id = useId();
  const text = (name: "name" | "base_url", label: string, placeholder: string) => (
    <label htmlFor={`${id}${name}`}>{label}<input id={`${id}${name}`} className="mono" spellCheck={false} autoComplete="off" placeholder={placeholder} value={options[name]} onChange={(event) => change({ [name]: event.target.value })} /></label>
  );
  const flag = (name: "allow_private" | "writes" | "trust_annotations", label: string) => (
    <label className="flag"><input type="checkbox" checked={options[name]} onChange={(event) => change({ [name]: event.target.checked })} /> {label}</label>
  );
  return (
    <details className="add-options">
      <summary className="small">Options</summary>
      <div className="add-fields">
        {text("name", "Name", "as detected")}
        {text("base_url", "Base URL of its calls", "as its definition says")}
        <label htmlFor={`${id}kind`}>Kind
          <select id={`${id}kind`} value={options.kind} onChange={(event) => change({ kind: event.target.value })}>
            <option value="">as detected</option>
            {["openapi", "graphql", "mcp", "functions"].map((kind) => <option key={kind}>{kind}</option>)}
          </select>
        </label>
        <label htmlFor={`${id}file`}>Settings
          <select id={`${id}file`} value={options.file} onChange={(event) => change({ file: event.target.value })}>
            <option value="">the project's, if there are any</option>
            <option value="user">the user's</option>
            <option value="project">the project's</option>
          </select>
        </label>
      </div>
      <div className="add-flags">
        {flag("allow_private", "It may reach loopback and private addresses (allow_private)")}
        {flag("writes", "Its writes are allowed without asking (writes)")}
        {flag("trust_annotations", "An MCP server says itself which tools only read (trust_annotations)")}
      </div>
    </details>
  );
}

interface PreviewProps {
  shown: SourceAddition;
  busy: boolean;
  onGo: () => void;
  onCancel: () => void;
}

function Preview({ shown, busy, onGo, onCancel }: PreviewProps) {
  const { source } = shown;
  const wantsConsent = !shown.opened && !shown.sign_in;
  return (
    <div className="preview" role="region" aria-label="What would be added">
      <h2><Visible text={source.title} limit={200} /> <span className="quiet small">{source.kind} · tools.{source.name}</span></h2>
      {wantsConsent ? <Consent shown={shown} /> : <Contents shown={shown} />}
      {!wantsConsent && (
        <>
          <p className="small">This changes <code><Visible text={shown.file} limit={300} /></code>:</p>
          <Diff lines={shown.diff} label="The change of the settings" />
        </>
      )}
      <div className="actions">
        <button className={wantsConsent ? "destructive" : "primary"} disabled={busy} onClick={onGo}>
          {wantsConsent ? (busy ? "Starting…" : shown.argv ? "Start it to see what it offers" : "Import it to see what it offers") : busy ? "Adding…" : "Add it"}
        </button>
        <button disabled={busy} onClick={onCancel}>Cancel</button>
      </div>
    </div>
  );
}

/** What opening would run, with every word as it is. Nothing of it has run so far. */
function Consent({ shown }: { shown: SourceAddition }) {
  return (
    <div className="note danger-note">
      <p><strong>{shown.argv ? "This starts a program on the machine of the server, with the rights of its user." : "This runs code on the machine of the server, with the rights of its user."}</strong> Nothing has run so far.</p>
      {shown.argv ? (
        <ol className="argv" aria-label="The words of the command">{shown.argv.map((word, at) => <li key={at}><code><Visible text={word} limit={4_000} /></code></li>)}</ol>
      ) : (
        <p><code><Visible text={shown.does} limit={2_000} /></code></p>
      )}
    </div>
  );
}

function Contents({ shown }: { shown: SourceAddition }) {
  const { source } = shown;
  const tools = source.tools ?? 0;
  return (
    <>
      <p>
        {shown.opened ? (
          <><strong>{tools.toLocaleString("en")} {tools === 1 ? "tool" : "tools"}</strong>: {(source.reads ?? 0).toLocaleString("en")} read, {(source.writes ?? 0).toLocaleString("en")} write{(source.writes ?? 0) > 0 && (source.writes_open ? ", and are allowed" : ", and ask a person first")}.</>
        ) : (
          <><strong>Its tools are known after you have signed in.</strong> Add it, then sign in here.</>
        )}
      </p>
      <p className="small quiet">It <Visible text={shown.does} limit={600} />.</p>
      {source.examples.length > 0 && (
        <ul className="examples mono">
          {source.examples.map((one) => <li key={one}><Visible text={one} limit={120} /></li>)}
          {tools > source.examples.length && <li className="quiet">… and {(tools - source.examples.length).toLocaleString("en")} more</li>}
        </ul>
      )}
      {source.credentials.length > 0 && (
        <div>
          {source.credentials.map((one) => <p key={one.slot} className="small">Needs {one.kind} <code><Visible text={one.slot} limit={100} /></code>: <Visible text={one.hint} limit={300} /></p>)}
        </div>
      )}
      {source.warnings.length > 0 && <ul className="note add-warnings">{source.warnings.slice(0, 8).map((text, at) => <li key={at}><Visible text={text} limit={400} /></li>)}{source.warnings.length > 8 && <li>… and {source.warnings.length - 8} more</li>}</ul>}
      {shown.sign_in && <Command text={commandIn(shown.sign_in)} />}
    </>
  );
}

const commandIn = (text: string) => /`([^`]+)`/.exec(text)?.[1] ?? text;
