// How verdicts, places and agents are shown, here and on other pages.
import { Visible, visibleText } from "../shell/visible";
import type { Verdict } from "./rules";
import "./policies.css";

const SHAPES: Record<Verdict, string> = { allow: "✓", ask: "●", deny: "⊘" };

export function VerdictMark({ verdict }: { verdict: Verdict }) {
  return (
    <span className={`verdict ${verdict}`}>
      <span className="shape" aria-hidden="true">{SHAPES[verdict] ?? "·"}</span>
      {verdict}
    </span>
  );
}

/** Where a setting stands: the end of the path and the line; all of it on hovering. */
export function Place({ place }: { place: string }) {
  if (!place) return <span className="quiet">built in</span>;
  const short = place.split("/").slice(-2).join("/");
  return <span className="place" title={visibleText(place)}><Visible text={short} limit={120} /></span>;
}

export function AgentName({ agent }: { agent: string }) {
  return agent === "*" ? <span className="quiet">every agent</span> : <Visible text={agent} limit={80} />;
}
