// What the checker says about the program, below the editor.
import type { ApiError } from "../api";
import { Visible } from "../shell/visible";
import type { Finding } from "./checks";

const MAX_SHOWN = 50;

export interface Checked {
  findings: Finding[];
  error: ApiError | null;
}

export function Findings({ checked, onFinding }: { checked: Checked | null; onFinding: (found: Finding) => void }) {
  if (!checked || checked.error || checked.findings.length === 0) return null;
  return (
    <ul className="findings" aria-label="Problems">
      {checked.findings.slice(0, MAX_SHOWN).map((found, at) => (
        <li key={at}>
          <button className="finding" onClick={() => onFinding(found)}>
            <span className="finding-place">{found.line}:{found.column}</span>
            <span className={found.stops ? "stops" : "quiet"}>{found.stops ? "✕" : "!"}<span className="hidden">{found.stops ? " stops the run: " : " warning: "}</span></span>
            <span><Visible text={found.message} limit={300} />{found.hint && <span className="quiet"> — <Visible text={found.hint} limit={300} /></span>}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The same in a few words. */
export function CheckSummary({ checked }: { checked: Checked | null }) {
  if (!checked) return <span className="quiet">Checking…</span>;
  if (checked.error) return <span className="quiet">Not checked: <Visible text={checked.error.message} limit={120} /></span>;
  const stopping = checked.findings.filter((found) => found.stops).length;
  const warnings = checked.findings.length - stopping;
  if (checked.findings.length === 0) return <span className="quiet">✓ No problems</span>;
  const parts = [counted(stopping, "problem"), counted(warnings, "warning")].filter(Boolean);
  return <span className={stopping ? "stops" : "quiet"}>{parts.join(", ")}</span>;
}

const counted = (count: number, word: string) => (count ? `${count} ${word}${count > 1 ? "s" : ""}` : "");
