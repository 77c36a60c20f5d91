// The decision on a call that nobody makes: every rule that matches it, which one wins, and why.
import { useId, useState, type ReactNode } from "react";
import { post } from "../api";
import { Copy } from "../shell/copy";
import { JsonTree } from "../shell/json-tree";
import { useDelayed, useLoaded } from "../shell/loaded";
import { Link, useQuery } from "../shell/router";
import { Empty, Loading, Problem } from "../shell/states";
import { Visible } from "../shell/visible";
import type { Json } from "../types";
import type { Wanted } from "./change-rule";
import { AgentName, Place, VerdictMark } from "./marks";
import { What } from "./rule-lists";
import { limitsOf, type Explanation, type Match } from "./rules";

interface Props {
  agents: string[];
  /** Ask for a rule about what is explained; without it, nobody may. */
  onRule: ((wanted: Wanted) => void) | null;
}

export function Explain({ agents, onRule }: Props) {
  const [query] = useQuery();
  const asked = { tool: query.get("tool") ?? "", agent: query.get("agent") ?? "default", args: query.get("args") ?? "" };
  return (
    <div className="explain">
      <Question key={JSON.stringify(asked)} asked={asked} agents={agents} />
      {asked.tool ? <Answer asked={asked} onRule={onRule} /> : <Empty title="Which call?">Name a tool and see what would happen to a call of it, and why. Nothing is called.</Empty>}
    </div>
  );
}

interface Asked {
  tool: string;
  agent: string;
  args: string;
}

function Question({ asked, agents }: { asked: Asked; agents: string[] }) {
  const [, change] = useQuery();
  const [now, setNow] = useState(asked);
  const id = useId();
  const problem = problemOf(now.args);
  const found = useSuggestions(now.tool);
  return (
    <form className="card panel" aria-label="The call" onSubmit={(event) => {
      event.preventDefault();
      if (!problem) change({ tool: now.tool.trim(), agent: now.agent === "default" ? null : now.agent, args: now.args.trim() });
    }}>
      <label htmlFor={`${id}-tool`}>Tool, or a URL that a program fetches</label>
      <input id={`${id}-tool`} data-search className="mono" list={`${id}-tools`} spellCheck={false} autoComplete="off" placeholder="shop.orders.cancel" value={now.tool} onChange={(event) => setNow({ ...now, tool: event.target.value })} />
      <datalist id={`${id}-tools`}>{found.map((path) => <option key={path} value={path} />)}</datalist>
      <label htmlFor={`${id}-agent`}>Agent</label>
      <select id={`${id}-agent`} value={now.agent} onChange={(event) => setNow({ ...now, agent: event.target.value })}>
        {[...new Set([...agents, now.agent])].map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
      <label htmlFor={`${id}-args`}>Arguments <span className="quiet">as JSON; without them, rules with conditions are left open</span></label>
      <textarea id={`${id}-args`} rows={5} spellCheck={false} placeholder={'{"amount": 250}'} aria-invalid={problem !== ""} value={now.args} onChange={(event) => setNow({ ...now, args: event.target.value })} />
      {problem && <p className="small"><strong>✕</strong> <Visible text={problem} limit={200} /></p>}
      <p><button className="primary" disabled={!now.tool.trim() || problem !== ""}>Explain</button></p>
    </form>
  );
}

function problemOf(args: string): string {
  if (!args.trim()) return "";
  try {
    const value: unknown = JSON.parse(args);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? "" : "the arguments are one JSON object";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Paths of tools for what somebody has typed so far. */
function useSuggestions(typed: string): string[] {
  const wanted = useDelayed(typed.trim(), 200);
  const isName = wanted.length > 1 && !wanted.includes("//");
  const load = async (signal: AbortSignal) => (isName ? (await post<{ tools: { path: string }[] }>("/v1/search", { query: wanted, limit: 12 }, { signal })).tools.map((one) => one.path.replace(/^tools\./, "")) : []);
  return useLoaded(`search ${wanted}`, load).data ?? [];
}

function Answer({ asked, onRule }: { asked: Asked; onRule: Props["onRule"] }) {
  const body = { tool: asked.tool, agent: asked.agent, ...(asked.args && !problemOf(asked.args) ? { args: JSON.parse(asked.args) as Json } : {}) };
  const found = useLoaded(JSON.stringify(body), (signal) => post<Explanation>("/v1/policies/explain", body, { signal }));
  if (found.error) return <Problem error={found.error} retry={found.reload} />;
  return found.data ? <Explained about={found.data} onRule={onRule} /> : <Loading />;
}

const WORDS = { allow: "This call would be made", ask: "A person would be asked", deny: "This call would be refused" };

function Explained({ about, onRule }: { about: Explanation; onRule: Props["onRule"] }) {
  const { verdict, reason } = about.decision;
  // A call that could send out what was read asks, whatever the rules allow.
  const shown = verdict === "allow" && about.reads.length > 0 ? "ask" : verdict;
  const isUrl = about.matches.some((one) => one.methods !== undefined) || about.tool.startsWith("egress.");
  return (
    <div className="explained" role="status" aria-label="The decision">
      <section className={`card panel decision ${shown}`}>
        <h2><VerdictMark verdict={shown} /> {WORDS[shown]}</h2>
        {shown !== verdict && <p>The rules allow it, but it could send out what this agent has read.</p>}
        {reason && <p><Visible text={reason} limit={400} /></p>}
        {about.hidden && <p className="note">The agent <strong><Visible text={about.agent} limit={80} /></strong> does not see this tool: for its programs there is none of this name.</p>}
        <p className="small quiet">
          <code><Visible text={about.tool} limit={200} /></code> by <Visible text={about.agent} limit={80} />
          {about.args === null && " · without arguments, to be safe"}
        </p>
      </section>
      <section className="card panel" aria-label="Rules that match">
        <h2>Rules that match <span className="quiet">{about.matches.length}</span></h2>
        <ol className="matches">
          {about.matches.map((one, at) => <MatchRow key={at} match={one} />)}
          <li className={about.matches.some((one) => one.wins) ? "match" : "match wins"}>
            <span className="match-mark">{about.matches.some((one) => one.wins) ? "" : "→"}</span>
            <div><p>The preset <strong>{about.preset}</strong></p><p className="quiet">{about.matches.some((one) => one.wins) ? "counts where no rule applies" : "no rule applies: it decides"}</p></div>
          </li>
        </ol>
      </section>
      <Labels about={about} />
      {about.budgets.length > 0 && (
        <Facts title="Budgets">
          {about.budgets.map((one, at) => <p key={at}><code><Visible text={one.pattern} limit={200} /></code>: {limitsOf(one)} <Place place={one.place} /></p>)}
        </Facts>
      )}
      {about.args !== null && <Facts title="Arguments, as the rules see them"><JsonTree value={about.args} /></Facts>}
      <Facts title="To change it">
        {about.change.startsWith("gloveport ") ? <p className="command"><code><Visible text={about.change} limit={400} /></code> <Copy text={about.change} /></p> : <p><Visible text={about.change} limit={400} /></p>}
        {onRule && !isUrl && <p><button onClick={() => onRule({ isNew: true, removes: false, rule: { pattern: about.tool, agent: about.agent === "default" ? "*" : about.agent, verdict: verdict === "ask" ? "allow" : "ask" } })}>Add a rule for this tool…</button></p>}
      </Facts>
    </div>
  );
}

function MatchRow({ match }: { match: Match }) {
  return (
    <li className={match.wins ? "match wins" : "match"}>
      <span className="match-mark" aria-hidden="true">{match.wins ? "→" : ""}</span>
      <div>
        <div className="match-rule"><VerdictMark verdict={match.verdict} /><div><What rule={match} /></div></div>
        <p>It <Visible text={match.why} limit={300} />.</p>
        <p className="quiet"><AgentName agent={match.agent} /> · <Place place={match.place} /></p>
      </div>
    </li>
  );
}

function Labels({ about }: { about: Explanation }) {
  if (about.labels.length === 0) return null;
  return (
    <Facts title="Labels">
      <p>{about.labels.map((label) => <span key={label} className="tag">{label}</span>)}</p>
      {about.reads.length > 0 && (
        <>
          <p className="small">It could send out what this agent has read before{about.decision.verdict === "deny" ? ":" : ", so it asks:"}</p>
          <ul className="small reads">
            {about.reads.map((read, at) => (
              <li key={at}><code><Visible text={read.tool} limit={200} /></code> {read.labels.map((label) => <span key={label} className="tag">{label}</span>)} {read.run && <Link href={`/runs/${encodeURIComponent(read.run)}`}>run {read.run.slice(0, 8)}</Link>}</li>
            ))}
          </ul>
        </>
      )}
    </Facts>
  );
}

function Facts({ title, children }: { title: string; children: ReactNode }) {
  return <section className="card panel" aria-label={title}><h2>{title}</h2>{children}</section>;
}
