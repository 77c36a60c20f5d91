// The audit: whether the record is intact, how the server is doing, and every recorded event.
import { get } from "../api";
import { useDelayed, useLoaded } from "../shell/loaded";
import { Link, useQuery } from "../shell/router";
import { Screen } from "../shell/screen";
import { isApprover, useMe } from "../shell/session";
import { Empty, Loading, Problem } from "../shell/states";
import type { Page } from "../types";
import { Events, type AuditEvent } from "./events";
import { Glance } from "./glance";
import { Verification } from "./verification";
import "../run/run.css";
import "../runs/runs.css";
import "./audit.css";

const PAGE_ROWS = 50;
const KINDS: [string, string][] = [
  ["", "All events"],
  ["run-*", "Runs"],
  ["call-*", "Calls"],
  ["call-denied", "Denied calls"],
  ["call-a*", "Asked and answered"],
  ["plan-*", "Plans"],
  ["token-*", "Tokens"],
  ["snippet-*", "Snippets"],
];
const SINCE: [string, string][] = [["", "any time"], ["15m", "15 minutes"], ["1h", "an hour"], ["24h", "a day"], ["7d", "a week"]];

export default function Audit() {
  const me = useMe();
  if (isApprover(me)) return <Record />;
  return <Screen title="Audit"><Empty title="The record is for people">{`The role ${me.role} does not see it.`}</Empty></Screen>;
}

function Record() {
  return (
    <Screen title="Audit">
      <Verification />
      <Glance />
      <List />
    </Screen>
  );
}

interface EventPage extends Page {
  events: AuditEvent[];
}

function List() {
  const [query, change] = useQuery();
  const names = ["kind", "tool", "run", "since", "cursor"] as const;
  const wanted = useDelayed(JSON.stringify(Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""]))));
  const load = (signal: AbortSignal) => get<EventPage>("/v1/audit", { query: { ...(JSON.parse(wanted) as Record<string, string>), limit: PAGE_ROWS }, signal });
  const found = useLoaded(`audit ${wanted}`, load);
  const filter = (part: Record<string, string>) => change({ ...part, cursor: null, event: null });
  const events = [...(found.data?.events ?? [])].reverse();
  const isFiltered = names.some((name) => query.has(name));
  return (
    <section className="record" aria-label="Events">
      <div className="record-head"><h2>Events</h2><button className="plain" onClick={found.reload}>Load again</button></div>
      <div className="filters">
        <select aria-label="Kind" value={query.get("kind") ?? ""} onChange={(event) => filter({ kind: event.target.value })}>
          {KINDS.map(([kind, name]) => <option key={kind} value={kind}>{name}</option>)}
        </select>
        <input type="search" data-search aria-label="Tool" placeholder="Tool, such as shop.*   /" value={query.get("tool") ?? ""} onChange={(event) => filter({ tool: event.target.value })} />
        <input className="narrow" aria-label="Run" placeholder="Run" size={12} spellCheck={false} value={query.get("run") ?? ""} onChange={(event) => filter({ run: event.target.value.trim() })} />
        <label className="since">since <select aria-label="Since" value={query.get("since") ?? ""} onChange={(event) => filter({ since: event.target.value })}>
          {SINCE.map(([since, name]) => <option key={since} value={since}>{name}</option>)}
        </select></label>
      </div>
      {found.error && <Problem error={found.error} retry={found.reload} />}
      {found.loading && <Loading />}
      {found.data && events.length === 0 && <Empty title={isFiltered ? "No event fits" : "Nothing is recorded yet"}>{isFiltered && <Link href="/audit">Show all events</Link>}</Empty>}
      {events.length > 0 && <Events events={events} />}
      <nav className="paging" aria-label="Pages of events">
        {query.get("cursor") && <button onClick={() => change({ cursor: null, event: null })}>Latest</button>}
        {found.data?.next && <button onClick={() => change({ cursor: found.data?.next ?? null, event: null })}>Older</button>}
      </nav>
    </section>
  );
}
