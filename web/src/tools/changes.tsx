// Definitions that have changed since somebody accepted them: what is different, and accepting it.
import { useState } from "react";
import { post } from "../api";
import { Diff } from "../shell/diff";
import { Confirm } from "../shell/dialog";
import type { Loaded } from "../shell/loaded";
import { Link } from "../shell/router";
import { isAdmin, useMe } from "../shell/session";
import { Empty, Loading, Problem } from "../shell/states";
import { say } from "../shell/toasts";
import { Visible } from "../shell/visible";
import type { SourceChange } from "../types";

const MAX_TOOLS = 100;

export function Changes({ changes }: { changes: Loaded<SourceChange[]> }) {
  if (changes.error) return <Problem error={changes.error} retry={changes.reload} />;
  if (!changes.data) return <Loading />;
  if (changes.data.length === 0) return <Empty title="Nothing has changed">Every tool is as it was when its definition was accepted.</Empty>;
  return <div className="changes-list">{changes.data.map((change) => <ChangedSource key={change.source} change={change} reload={changes.reload} />)}</div>;
}

function ChangedSource({ change, reload }: { change: SourceChange; reload: () => void }) {
  const count = `${change.tools.length.toLocaleString("en")} ${change.tools.length === 1 ? "tool" : "tools"}`;
  return (
    <section className="card changed-source" aria-label={`Changes of ${change.source}`}>
      <header>
        <h2 className="mono"><Visible text={change.source} /></h2>
        <span className="quiet small">{count}</span>
        <span className="spread" />
        <Accept change={change} reload={reload} />
      </header>
      {change.tools.slice(0, MAX_TOOLS).map((one) => (
        <div key={one.tool} className="changed-tool">
          <h3><Link href={`/tools/${encodeURIComponent(one.tool)}`}><Visible text={one.tool} limit={300} /></Link></h3>
          <Diff lines={one.diff} label={`What has changed in ${one.tool}`} />
        </div>
      ))}
      {change.tools.length > MAX_TOOLS && <p className="quiet small">… and {change.tools.length - MAX_TOOLS} more</p>}
    </section>
  );
}

export function Accept({ change, reload }: { change: SourceChange; reload: () => void }) {
  const [asks, setAsks] = useState(false);
  const admin = isAdmin(useMe());
  if (!admin) return <span className="quiet small">An admin can accept it.</span>;
  return (
    <>
      <button onClick={() => setAsks(true)}>Accept…</button>
      {asks && (
        <Confirm title={`Accept the definition of ${change.source}?`} verb="Accept it" onClose={() => setAsks(false)} onConfirm={async () => {
          const { accepted } = await post<{ accepted: string[] }>("/v1/changes/accept", { source: change.source, digest: change.digest });
          say(`${accepted.length} ${accepted.length === 1 ? "tool" : "tools"} of ${change.source} can be called again.`);
          reload();
        }}>
          <p>Programs can call {change.tools.length === 1 ? "this tool" : `these ${change.tools.length} tools`} again, as the source defines them now. Rules hold as before.</p>
          <ul className="small">{change.tools.slice(0, 12).map((one) => <li key={one.tool}><code><Visible text={one.tool} limit={200} /></code></li>)}</ul>
        </Confirm>
      )}
    </>
  );
}
