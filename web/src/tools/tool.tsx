// One tool: what it does, what a rule says about it, its types, and a form that calls it.
import { useState } from "react";
import { get, post } from "../api";
import { CodeView } from "../shell/code-view";
import { Copy } from "../shell/copy";
import { Diff } from "../shell/diff";
import { useLoaded, type Loaded } from "../shell/loaded";
import { Link, useQuery } from "../shell/router";
import { isApprover, runsPrograms, useMe } from "../shell/session";
import { Loading, Problem } from "../shell/states";
import { Visible } from "../shell/visible";
import type { Explanation, SourceChange, ToolDetails } from "../types";
import { CallForm } from "./call-form";
import { Accept } from "./changes";

const LANGUAGES = [["typescript", "TypeScript"], ["python", "Python"]] as const;

export function ToolScreen({ path, changes }: { path: string; changes: Loaded<SourceChange[]> }) {
  const me = useMe();
  const found = useLoaded(`tool ${path}`, (signal) => get<ToolDetails>(`/v1/tools/${encodeURIComponent(path)}`, { signal }));
  if (found.error) return <Problem error={found.error} retry={found.reload} />;
  if (!found.data) return <Loading />;
  const { tool, schema } = found.data;
  const change = changes.data?.find((one) => one.source === tool.source);
  const own = change?.tools.find((one) => one.tool === tool.address);
  const accepted = () => { changes.reload(); found.reload(); };
  return (
    <article className="tool" aria-label={tool.path}>
      <header className="tool-head">
        <h2 className="mono"><Visible text={tool.path} limit={300} /></h2>
        <Copy text={`tools.${tool.path}`} label="Copy name" />
      </header>
      <p className="facts tool-facts">
        <span className={tool.writes ? "tag strong" : "tag"}>{tool.writes ? "writes" : "reads"}</span>
        <span className="small quiet">from <Link href={`/sources/${encodeURIComponent(tool.source)}`}><Visible text={tool.source} limit={100} /></Link></span>
        {tool.address !== tool.path && <span className="small quiet mono"><Visible text={tool.address} limit={300} /></span>}
      </p>
      {tool.suspended && (
        <section className="note suspended" aria-label="Suspended">
          <strong>It can't be called now.</strong> <Visible text={tool.suspended} />
          {own && change && (
            <>
              <Diff lines={own.diff} label="What has changed" />
              <div className="actions"><Accept change={change} reload={accepted} />{change.tools.length > 1 && <Link className="small" href="/tools?view=changes">All changes of {change.source}</Link>}</div>
            </>
          )}
        </section>
      )}
      {tool.description && <div className="tool-description"><Visible text={tool.description} limit={1_200} /></div>}
      {isApprover(me) && <Rule address={tool.address} />}
      {runsPrograms(me) && !tool.suspended && <CallForm tool={tool} schema={schema} />}
      <Types details={found.data} />
    </article>
  );
}

const SOME = { allow: "Calls are allowed when", ask: "A call asks a person first when", deny: "Calls are denied when" };
const VERDICTS = { allow: "Calls are allowed", ask: "Each call asks a person first", deny: "Calls are denied" };

function Rule({ address }: { address: string }) {
  const found = useLoaded(`explain ${address}`, (signal) => post<Explanation>("/v1/policies/explain", { tool: address }, { signal }));
  if (found.error) return <Problem error={found.error} />;
  if (!found.data) return null;
  const { decision, labels, matches, preset } = found.data;
  const winner = matches.find((one) => one.wins);
  return (
    <section className="tool-rule" aria-label="Rule">
      <p>
        <strong className={decision.verdict === "ask" ? "urgent" : ""}>
          <span aria-hidden="true">{SIGNS[decision.verdict]} </span>
          {winner?.when ? <>{SOME[decision.verdict]} <code><Visible text={winner.when} limit={200} /></code></> : VERDICTS[decision.verdict]}
        </strong>{" "}
        <span className="quiet small">
          {winner ? <> by <code><Visible text={`${winner.verdict} = "${winner.pattern}"`} limit={200} /></code> in <Visible text={winner.place || "code"} limit={200} /></> : <> by the preset {preset}</>}
        </span>
      </p>
      {decision.reason && <p className="small quiet"><Visible text={decision.reason} limit={400} /></p>}
      {labels.length > 0 && <p className="small">Flow labels: {labels.map((label) => <span key={label} className="tag">{label}</span>)}</p>}
      <p className="small"><Link href={`/policies?view=explain&tool=${encodeURIComponent(address)}`}>Explain and change it</Link></p>
    </section>
  );
}

const SIGNS = { allow: "✓", ask: "●", deny: "✕" };

function Types({ details }: { details: ToolDetails }) {
  const [query, change] = useQuery();
  const [language, setLanguage] = useState(query.get("language") === "python" ? "python" : "typescript");
  const choose = (next: string) => {
    setLanguage(next);
    change({ language: next === "python" ? next : null });
  };
  const code = language === "python" ? details.python : details.typescript;
  return (
    <section className="card tool-types" aria-label="Types">
      <header>
        <div className="tabs" role="tablist" aria-label="Language">
          {LANGUAGES.map(([id, name]) => (
            <button key={id} role="tab" aria-selected={language === id} onClick={() => choose(id)}>{name}</button>
          ))}
        </div>
        <Copy text={code} />
      </header>
      <div role="tabpanel" tabIndex={0} className="types-code"><CodeView code={code} language={language} /></div>
    </section>
  );
}
