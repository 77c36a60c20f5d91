// One source: how it is, what it offers, its credentials, and what can be done about it.
import { useEffect, useRef, useState } from "react";
import { post } from "../api";
import { Copy } from "../shell/copy";
import { Diff } from "../shell/diff";
import { Confirm } from "../shell/dialog";
import { Link } from "../shell/router";
import { isAdmin, useMe } from "../shell/session";
import { say, sayFailed } from "../shell/toasts";
import { Visible } from "../shell/visible";
import type { CredentialRow, SettingsChange, SourceRow } from "../types";
import { SignIn } from "./sign-in";

const STATES: Record<SourceRow["state"], [string, string, string]> = {
  open: ["✓", "open", ""],
  opening: ["◐", "being opened", "running"],
  broken: ["✕", "can't be used", "failed"],
  untrusted: ["●", "not trusted", "waiting"],
};
const MAX_WARNINGS = 5;

interface Props {
  row: SourceRow;
  isChosen: boolean;
  reload: () => void;
}

export function SourceCard({ row, isChosen, reload }: Props) {
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isChosen) card.current?.scrollIntoView({ block: "nearest" });
  }, [isChosen]);
  const [sign, word, tone] = needsSignIn(row) ? ["●", "sign-in needed", "waiting"] : STATES[row.state];
  const hasCommand = (row.credentials ?? []).some((one) => one.state !== "ready" && one.state !== "external");
  const admin = isAdmin(useMe());
  return (
    <section ref={card} className={`card source ${isChosen ? "chosen" : ""} ${row.state}`} aria-label={`Source ${row.name}`}>
      <header>
        <h2><Link href={`/sources/${encodeURIComponent(row.name)}`}><Visible text={row.name} limit={200} /></Link></h2>
        {row.kind && row.kind !== "unknown" && <span className="tag">{row.kind}</span>}
        <span className={`badge ${tone}`}><span className="shape" aria-hidden="true">{sign}</span>{word}</span>
        <span className="spread" />
        <Actions row={row} reload={reload} />
      </header>
      <p className="small source-facts">
        <Link href={`/tools?source=${encodeURIComponent(row.name)}`}>{row.tools.toLocaleString("en")} {row.tools === 1 ? "tool" : "tools"}</Link>
        {row.writes > 0 && <span className="quiet">{row.writes.toLocaleString("en")} {row.writes === 1 ? "that writes" : "that write"}</span>}
        {(row.suspended ?? 0) > 0 && <Link className="urgent" href="/tools?view=changes">{row.suspended} suspended: {row.suspended === 1 ? "it has" : "they have"} changed</Link>}
        {row.location && <span className="quiet mono source-place"><Visible text={row.location} limit={300} /></span>}
      </p>
      {row.problem && (
        <div className="source-problem" role="status">
          <p><Visible text={row.problem} limit={600} /></p>
          {row.hint && !hasCommand && <p className="quiet small"><Visible text={row.hint} limit={400} /></p>}
          {row.state === "untrusted" && <Command text={`gloveport tools trust ${row.name}`} />}
        </div>
      )}
      {(row.credentials?.length ?? 0) > 0 && <Credentials rows={row.credentials ?? []} />}
      {(row.warnings?.length ?? 0) > 0 && <Warnings texts={row.warnings ?? []} />}
      {row.file && isChosen && <p className="quiet small">Set in <Visible text={row.file} limit={300} /></p>}
      {row.account && admin && <SignIn source={row.name} slot={accountSlot(row)} needed={needsSignIn(row)} onDone={reload} />}
    </section>
  );
}

/** Whether an account keeps the source from being used. */
const needsSignIn = (row: SourceRow) =>
  (row.credentials ?? []).some((one) => one.state === "sign-in-needed" || (row.state === "broken" && one.account && one.state !== "ready"));
const accountSlot = (row: SourceRow) => (row.credentials ?? []).find((one) => one.account)?.slot ?? null;

function Warnings({ texts }: { texts: string[] }) {
  return (
    <details className="source-warnings">
      <summary className="small">{texts.length} {texts.length === 1 ? "warning" : "warnings"}</summary>
      <ul className="small">
        {texts.slice(0, MAX_WARNINGS).map((text, at) => <li key={at}><Visible text={text} limit={500} /></li>)}
        {texts.length > MAX_WARNINGS && <li className="quiet">… and {texts.length - MAX_WARNINGS} more</li>}
      </ul>
    </details>
  );
}

const CREDENTIAL_STATES: Record<CredentialRow["state"], [string, string, string]> = {
  ready: ["✓", "set", ""],
  missing: ["○", "missing", "waiting"],
  expired: ["✕", "expired", "waiting"],
  "sign-in-needed": ["●", "sign in again", "waiting"],
  external: ["◇", "read when needed", ""],
};

function Credentials({ rows }: { rows: CredentialRow[] }) {
  return (
    <dl className="credentials" aria-label="Credentials">
      {rows.map((one) => {
        const [sign, word, tone] = CREDENTIAL_STATES[one.state];
        return (
          <div key={one.slot}>
            <dt className="mono"><Visible text={one.slot} limit={100} /></dt>
            <dd>
              <span className={`badge ${tone}`}><span className="shape" aria-hidden="true">{sign}</span>{word}</span>
              <span className="quiet small">
                {one.state === "ready" || one.state === "external" ? <>from <Visible text={one.from} limit={120} /></> : null}
                {one.issuer && <> · <Visible text={one.issuer} limit={120} /></>}
                {one.days !== null && one.state === "ready" && <> · {one.days === 0 ? "expires today" : `expires in ${one.days} ${one.days === 1 ? "day" : "days"}`}</>}
              </span>
              {one.state !== "ready" && one.state !== "external" && <Command text={one.command} or={one.variable && !one.account ? `or set ${one.variable} for the server` : ""} />}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** A command for a terminal of the person whose server this is. */
export function Command({ text, or = "" }: { text: string; or?: string }) {
  return (
    <>
      <div className="command"><code><Visible text={text} limit={300} /></code><Copy text={text} /></div>
      {or && <p className="quiet small"><Visible text={or} limit={200} /></p>}
    </>
  );
}

function Actions({ row, reload }: { row: SourceRow; reload: () => void }) {
  const [busy, setBusy] = useState(false);
  const [removal, setRemoval] = useState<SettingsChange | null>(null);
  const admin = isAdmin(useMe());
  if (!admin || row.kind === undefined || (row.kind === "functions" && !row.location)) return null;
  const path = `/v1/sources/${encodeURIComponent(row.name)}`;
  const refresh = async () => {
    setBusy(true);
    try {
      const { source } = await post<{ source: SourceRow }>(`${path}/refresh`);
      if (source.state === "open" && source.warnings?.every((text) => !text.includes("stay as they were"))) say(`${row.name} was opened again: ${source.tools} tools.`);
      else say(`${row.name} could not be opened again.`);
      reload();
    } catch (error) {
      sayFailed(error);
    }
    setBusy(false);
  };
  const showRemoval = () => void post<SettingsChange>(`${path}/remove`).then(setRemoval).catch(sayFailed);
  return (
    <div className="actions">
      <button disabled={busy} onClick={() => void refresh()}>{busy ? "Opening…" : "Refresh"}</button>
      {row.file && <button onClick={showRemoval}>Remove…</button>}
      {removal && (
        <Confirm title={`Remove ${row.name}?`} verb="Remove it" destructive onClose={() => setRemoval(null)} onConfirm={async () => {
          const made = await post<SettingsChange>(`${path}/remove`, { digest: removal.digest });
          say(made.live ? `${row.name} is removed.` : `${row.name} is removed from the settings. Restart the server.`);
          reload();
        }}>
          <p>Programs that begin from now on can't call its tools. Calls that are under way may fail. This changes <code><Visible text={removal.file} limit={300} /></code>:</p>
          <Diff lines={removal.diff} label="The change" />
        </Confirm>
      )}
    </div>
  );
}
