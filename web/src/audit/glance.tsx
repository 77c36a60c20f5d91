// How the server is doing: what its metrics say, since it started.
import type { ReactNode } from "react";
import { useLoaded } from "../shell/loaded";
import { Link } from "../shell/router";
import { Problem } from "../shell/states";
import { duration } from "../shell/time";
import { Visible } from "../shell/visible";
import { loadMetrics, partsBy, quantile, total, type Sample } from "./metrics";

const POLL_MS = 4_000;
const PARTS_SHOWN = 3;

export function Glance() {
  const found = useLoaded("metrics", loadMetrics, POLL_MS);
  if (found.error) return <Problem error={found.error} retry={found.reload} />;
  const samples = found.data ?? [];
  return (
    <section className="glance" aria-label="Metrics since the server started" aria-busy={found.data === null}>
      <Runs samples={samples} />
      <Tile title="Calls" value={count(total(samples, "gloveport_calls_total"))} parts={partsBy(samples, "gloveport_calls_total", "status")} />
      <Waiting samples={samples} />
      <Failures samples={samples} />
      <Times title="Time of a run" samples={samples} metric="gloveport_run_duration_seconds" />
      <Times title="Time of a call" samples={samples} metric="gloveport_call_duration_seconds" />
    </section>
  );
}

const count = (value: number) => value.toLocaleString("en");

function Runs({ samples }: { samples: Sample[] }) {
  const running = total(samples, "gloveport_runs_admitted");
  return <Tile title="Runs" value={count(total(samples, "gloveport_runs_total"))} parts={[...(running ? [["running", running] as [string, number]] : []), ...partsBy(samples, "gloveport_runs_total", "status")]} />;
}

function Waiting({ samples }: { samples: Sample[] }) {
  const waiting = total(samples, "gloveport_approvals_waiting");
  const broken = total(samples, "gloveport_sources_broken");
  return (
    <Tile title="Needs you" value={count(waiting)} isUrgent={waiting > 0}>
      {waiting > 0 ? <Link className="tile-part" href="/approvals">{waiting === 1 ? "call waits" : "calls wait"} for a person</Link> : broken === 0 && "no call waits"}
      {broken > 0 && <Link className="tile-part" href="/sources">{count(broken)} {broken === 1 ? "source" : "sources"} broken</Link>}
    </Tile>
  );
}

function Failures({ samples }: { samples: Sample[] }) {
  const runs = total(samples, "gloveport_runs_total");
  const failed = total(samples, "gloveport_runs_total", { status: "failed" });
  const share = runs ? `${((failed / runs) * 100).toFixed(failed && failed / runs < 0.1 ? 1 : 0)} %` : "–";
  return <Tile title="Runs that failed" value={share} parts={partsBy(samples, "gloveport_run_errors_total", "code")} />;
}

function Times({ title, samples, metric }: { title: string; samples: Sample[]; metric: string }) {
  const [half, most] = [quantile(samples, metric, 0.5), quantile(samples, metric, 0.95)];
  return <Tile title={title} value={half === null ? "–" : `≈ ${duration(half)}`}>{half === null || most === null ? "none yet" : <><span className="tile-part">median</span>95 % below ≈ {duration(most)}</>}</Tile>;
}

interface TileProps {
  title: string;
  value: string;
  parts?: [string, number][];
  isUrgent?: boolean;
  children?: ReactNode;
}

function Tile({ title, value, parts = [], isUrgent, children }: TileProps) {
  return (
    <dl className="card tile">
      <dt>{title}</dt>
      <dd className={isUrgent ? "tile-value urgent" : "tile-value"}>{value}</dd>
      <dd className="small quiet">
        {parts.slice(0, PARTS_SHOWN).map(([name, much]) => <span key={name} className="tile-part">{count(much)} <Visible text={name} limit={60} /></span>)}
        {children}
      </dd>
    </dl>
  );
}
