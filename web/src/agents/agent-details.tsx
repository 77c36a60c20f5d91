// One agent: which tools its programs see, and which rules, budgets and limits hold for them.
import { useEffect, useRef, type ReactNode } from "react";
import { get } from "../api";
import { AgentName, Place, VerdictMark } from "../policies/marks";
import { What } from "../policies/rule-lists";
import { limitsOf, type Policies } from "../policies/rules";
import { useLoaded } from "../shell/loaded";
import { Link } from "../shell/router";
import { Loading, Problem } from "../shell/states";
import { Ago } from "../shell/time";
import { Visible } from "../shell/visible";
import { isAgent, isRefused, isServers, ROLES, type Holder } from "./agents";

const MAX_RULES_SHOWN = 20;
const ONE_COLUMN_PX = 900; // below it, the details stand under the list

interface Props {
  holder: Holder;
  onRemove: () => void;
  onToken: () => void;
}

export function AgentDetails({ holder, onRemove, onToken }: Props) {
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (window.innerWidth <= ONE_COLUMN_PX && location.search) card.current?.scrollIntoView();
  }, []);
  const meaning = ROLES.find(([role]) => role === holder.role)?.[1];
  return (
    <section ref={card} className="card panel agent-details" aria-label={`The ${holder.role} ${holder.name}`}>
      <header className="panel-head">
        <h2><Visible text={holder.name} limit={80} /></h2>
        <span className="tag">{holder.role}</span>
        <span className="spread" />
        {holder.created !== null ? (
          <button className="destructive" onClick={onRemove}>Remove the token…</button>
        ) : !isServers(holder) && (
          <button onClick={onToken}>Make its token…</button>
        )}
      </header>
      <p className="small quiet">It {meaning}.{" "}{holder.created !== null ? <>Token made <Ago time={holder.created} />.</> : isServers(holder) ? "It has the token of the server." : "It has no token yet."}</p>
      {isRefused(holder) && <p className="note">The settings have no <code>[agents.{holder.name}]</code>: the server refuses this token.</p>}
      {isAgent(holder) && holder.configured && <Seen holder={holder} />}
    </section>
  );
}

function Seen({ holder }: { holder: Holder }) {
  const agent = encodeURIComponent(holder.name);
  return (
    <>
      <Tools holder={holder} />
      <Rules agent={holder.name} />
      {Object.keys(holder.limits).length > 0 && (
        <Part title="Limits of its runs">
          <ul className="facts-list">{Object.entries(holder.limits).map(([name, value]) => <li key={name}><code><Visible text={name} limit={80} /></code> {String(value)}</li>)}</ul>
        </Part>
      )}
      <p className="actions">
        <Link className="button" href={`/runs?agent=${agent}`}>Its runs</Link>
        <Link className="button" href={`/policies?view=explain&agent=${agent}`}>Explain a call of it</Link>
      </p>
    </>
  );
}

interface Name {
  name: string;
  path: string;
  tools: number;
  is_tool: boolean;
}

function Tools({ holder }: { holder: Holder }) {
  const found = useLoaded(`names ${holder.name}`, async (signal) => (await get<{ names: Name[] }>("/v1/namespaces", { query: { agent: holder.name }, signal })).names);
  const total = found.data?.reduce((sum, one) => sum + one.tools, 0) ?? 0;
  return (
    <Part title="Tools that its programs see" count={found.data ? total : undefined}>
      <p className="small quiet">
        {holder.tools.join() === "*" ? "all that there are" : <>those that fit {holder.tools.map((one, at) => <span key={one}>{at > 0 && ", "}<code><Visible text={one} limit={120} /></code></span>)}</>}
      </p>
      {found.error && <Problem error={found.error} retry={found.reload} />}
      {found.data && found.data.length === 0 && <p className="small">None of the tools here fits.</p>}
      {found.data && found.data.length > 0 && (
        <ul className="names">
          {found.data.map((one) => <li key={one.path}><code><Visible text={one.path} limit={120} /></code>{!one.is_tool && <span className="quiet">{one.tools.toLocaleString("en")}</span>}</li>)}
        </ul>
      )}
    </Part>
  );
}

function Rules({ agent }: { agent: string }) {
  const found = useLoaded(`policies of ${agent}`, (signal) => get<Policies>("/v1/policies", { query: { agent }, signal }));
  if (found.error) return <Problem error={found.error} retry={found.reload} />;
  if (!found.data) return <Loading />;
  const { rules, budgets, preset } = found.data;
  return (
    <>
      <Part title="Rules for its calls" count={rules.length}>
        <ul className="agent-rules">
          {rules.slice(0, MAX_RULES_SHOWN).map((one, at) => (
            <li key={at}><VerdictMark verdict={one.verdict} /><div><What rule={one} /></div><span className="small"><AgentName agent={one.agent} /></span><Place place={one.place} /></li>
          ))}
        </ul>
        {rules.length > MAX_RULES_SHOWN && <p className="small"><Link href="/policies">All {rules.length} rules</Link></p>}
        <p className="small quiet">Where none applies, the preset <strong>{preset}</strong> decides.</p>
      </Part>
      {budgets.length > 0 && (
        <Part title="Budgets" count={budgets.length}>
          <ul className="facts-list">{budgets.map((one, at) => <li key={at}><code><Visible text={one.pattern} limit={120} /></code> {limitsOf(one)} <Place place={one.place} /></li>)}</ul>
        </Part>
      )}
    </>
  );
}

function Part({ title, count, children }: { title: string; count?: number | undefined; children: ReactNode }) {
  return <div className="agent-part"><h3>{title} {count !== undefined && <span className="quiet">{count.toLocaleString("en")}</span>}</h3>{children}</div>;
}
