// Whether the record is as it was written: every event has the hash of the one before it.
import { get } from "../api";
import { Copy } from "../shell/copy";
import { useLoaded } from "../shell/loaded";
import { Problem } from "../shell/states";
import { Visible } from "../shell/visible";

interface Report {
  events: number;
  intact: boolean;
  heads: { [chain: string]: string };
  problems: string[];
}

const EXPORT = "gloveport audit export > audit.jsonl";
const MAX_PROBLEMS_SHOWN = 50;

export function Verification() {
  const found = useLoaded("verification", (signal) => get<Report>("/v1/audit/verification", { signal }));
  if (found.error) return <Problem error={found.error} retry={found.reload} />;
  const report = found.data;
  const chains = Object.entries(report?.heads ?? {});
  return (
    <section className={report && !report.intact ? "card panel verification broken" : "card panel verification"} aria-label="Verification" role="status">
      <div className="panel-head">
        <h2>
          {!report ? <span className="quiet">Verifying…</span> : report.intact ? <><span aria-hidden="true">✓</span> The record is intact</> : <><span aria-hidden="true">✕</span> The record was changed</>}
        </h2>
        {report && <span className="small quiet">{report.events.toLocaleString("en")} events in {chains.length} {chains.length === 1 ? "chain" : "chains"}</span>}
        <span className="spread" />
        <button disabled={!report} onClick={found.reload}>Verify again</button>
      </div>
      {report?.problems.slice(0, MAX_PROBLEMS_SHOWN).map((problem) => <p key={problem} className="small"><Visible text={problem} limit={400} /></p>)}
      {report && report.problems.length > MAX_PROBLEMS_SHOWN && <p className="small quiet">and {report.problems.length - MAX_PROBLEMS_SHOWN} more</p>}
      <details className="small">
        <summary>Heads of the chains, and how to take the record out</summary>
        <p className="quiet">Keep the heads elsewhere: <code>gloveport audit verify</code> compares them, so that nobody can cut off the end of a chain unseen.</p>
        <dl className="heads">{chains.map(([chain, head]) => <div key={chain}><dt><code><Visible text={chain} limit={80} /></code></dt><dd><code><Visible text={head} limit={80} /></code></dd></div>)}</dl>
        <p className="command"><code>{EXPORT}</code> <Copy text={EXPORT} /></p>
      </details>
    </section>
  );
}
