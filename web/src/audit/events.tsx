// The recorded events, the latest first. One opens to all that is recorded of it.
import type { ReactNode } from "react";
import { Copy } from "../shell/copy";
import { JsonTree } from "../shell/json-tree";
import { Link, useQuery } from "../shell/router";
import { Visible, visibleText } from "../shell/visible";
import type { Json } from "../types";

export interface AuditEvent {
  chain: string;
  number: number;
  at: string;
  kind: string;
  body: { [name: string]: Json };
  hash: string;
  /** The tool of the call that it is about, also where only an earlier event names it. */
  tool: string | null;
  payloads: { [name: string]: Json };
  /** The body where it is no JSON object: somebody has edited it. */
  raw?: string;
}

const RUN_ID = /^[A-Za-z0-9][\w.-]{0,127}$/;
const DIGEST = /^[0-9a-f]{64}$/;
const NEEDS = new Set(["call-asked"]);
const REFUSALS = new Set(["call-denied"]);

export const idOf = ({ chain, number }: AuditEvent) => `${chain}.${number}`;

export function Events({ events }: { events: AuditEvent[] }) {
  const [query, change] = useQuery();
  const chosen = query.get("event");
  return (
    <ol className="events" aria-label="Events, the latest first">
      {events.map((event) => {
        const id = idOf(event);
        const isOpen = id === chosen;
        return (
          <li key={id} className={isOpen ? "event open" : "event"}>
            <button className="event-row" aria-expanded={isOpen} onClick={() => change({ event: isOpen ? null : id })}>
              <time dateTime={event.at} title={event.at}>{timeOf(event.at)}</time>
              <span className={kindClass(event)}>{visibleText(event.kind).slice(0, 60)}</span>
              <span className="event-what"><Summary event={event} /></span>
              <span className="event-agent quiet"><Text value={event.body["agent"]} /></span>
              <span className="event-run quiet">{typeof event.body["run"] === "string" && <code>{visibleText(event.body["run"]).slice(0, 8)}</code>}</span>
            </button>
            {isOpen && <Details event={event} />}
          </li>
        );
      })}
    </ol>
  );
}

function kindClass({ kind, body }: AuditEvent): string {
  if (REFUSALS.has(kind) || body["status"] === "failed" || body["answer"] === "deny") return "event-kind strong";
  return NEEDS.has(kind) ? "event-kind urgent" : "event-kind";
}

const timeOf = (at: string) => new Date(at).toLocaleString(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** What an event is about, in a few words: the first of these that it has. */
function Summary({ event: { body, raw, tool } }: { event: AuditEvent }) {
  if (raw !== undefined) return <Visible text={raw} limit={120} inButton />;
  const about = tool ?? ["name", "snippet", "plan", "of"].map((key) => body[key]).find((value) => typeof value === "string");
  const facts = ["role", "status", "error", "answer", "approver", "verdict", "rule", "language", "engine"].flatMap((key) => (typeof body[key] === "string" ? [body[key]] : []));
  return (
    <>
      {typeof about === "string" && <code><Visible text={about} limit={120} inButton /></code>}
      {facts.length > 0 && <span className="quiet"><Visible text={facts.slice(0, 2).join(" · ")} limit={160} inButton /></span>}
    </>
  );
}

function Text({ value }: { value: Json | undefined }) {
  return typeof value === "string" ? <Visible text={value} limit={60} inButton /> : null;
}

function Details({ event }: { event: AuditEvent }) {
  const { run } = event.body;
  const body = Object.fromEntries(Object.entries(event.body).filter(([key]) => !(key in event.payloads)));
  return (
    <div className="event-details">
      <dl className="event-facts">
        <Fact name="Time"><code>{event.at}</code></Fact>
        {typeof run === "string" && <Fact name="Run">{RUN_ID.test(run) ? <Link href={`/runs/${encodeURIComponent(run)}`}><code><Visible text={run} limit={130} /></code></Link> : <Visible text={run} limit={130} />}</Fact>}
        <Fact name="Chain"><code><Visible text={event.chain} limit={80} /></code>, event {event.number.toLocaleString("en")}</Fact>
        <Fact name="Hash"><code><Visible text={event.hash} limit={80} /></code></Fact>
      </dl>
      {event.raw !== undefined ? <pre className="frame"><Visible text={event.raw} /></pre> : <JsonTree value={body} />}
      {Object.entries(event.payloads).map(([name, value]) => (
        <div key={name}>
          <h3><Visible text={name} limit={80} /></h3>
          {name === "code" && typeof value === "string" ? <pre className="frame"><Visible text={value} /></pre> : <JsonTree value={value} />}
        </div>
      ))}
      {Object.entries(event.body).some(([name, value]) => typeof value === "string" && DIGEST.test(value) && !(name in event.payloads) && name !== "digest") && <p className="small quiet">What a digest stands for here is not kept any more, or not kept in the record.</p>}
      <p><Copy label="Copy as JSON" text={() => JSON.stringify(event, null, 2)} /></p>
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}
