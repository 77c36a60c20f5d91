// Which program is in the editor, in which language, and whose tools it has.
import { get } from "../api";
import { useLoaded } from "../shell/loaded";
import { navigate } from "../shell/router";
import { isAdmin, useMe } from "../shell/session";
import type { Example, Program } from "./programs";

interface Props {
  origin: string;
  program: Program | null;
  examples: Example[];
  isEdited: boolean;
  onEdit: (change: Partial<Program>) => void;
  onReset: () => void;
}

const LANGUAGES: Record<string, string> = { typescript: "TypeScript", python: "Python", javascript: "JavaScript" };

export function Toolbar({ origin, program, examples, isEdited, onEdit, onReset }: Props) {
  const ofRun = origin.startsWith("run=") ? origin.slice(4) : "";
  const open = (chosen: string) => navigate(`/playground?${chosen}`);
  const language = program?.language ?? "typescript";
  const choose = (to: string) => (origin.startsWith("new=") && !isEdited ? open(`new=${to}`) : onEdit({ language: to }));
  return (
    <header className="bench-head">
      <select aria-label="Program to start from" value={origin} onChange={(event) => open(event.target.value)}>
        {ofRun && <option value={origin}>Run {ofRun.slice(0, 8)}</option>}
        <optgroup label="Examples">
          {examples.map((one) => <option key={one.name} value={`example=${encodeURIComponent(one.name)}`}>{one.title}</option>)}
        </optgroup>
        <optgroup label="New">
          <option value="new=typescript">New TypeScript program</option>
          <option value="new=python">New Python program</option>
        </optgroup>
      </select>
      {isEdited && <button className="plain undo-all" title="Back to the program as it came" onClick={onReset}>Undo all</button>}
      <span className="spread" />
      <Agents agent={program?.agent ?? ""} onChange={(agent) => onEdit({ agent })} />
      <div className="choices" role="group" aria-label="Language">
        {Object.entries(LANGUAGES).filter(([name]) => name !== "javascript" || language === name).map(([name, shown]) => (
          <button key={name} aria-pressed={language === name} onClick={() => choose(name)}>{shown}</button>
        ))}
      </div>
    </header>
  );
}

/** An admin runs programs for any agent: with its tools, its rules and its limits. */
function Agents({ agent, onChange }: { agent: string; onChange: (agent: string) => void }) {
  const me = useMe();
  const found = useLoaded("agents of rules", async (signal) => (isAdmin(me) ? (await get<{ agents: string[] }>("/v1/policies", { signal })).agents : []));
  const names = [...new Set(["default", ...(found.data ?? []), ...(agent ? [agent] : [])])];
  if (!isAdmin(me) || names.length < 2) return null;
  return (
    <label className="as-agent">
      as{" "}
      <select aria-label="Agent" value={agent || "default"} onChange={(event) => onChange(event.target.value === "default" ? "" : event.target.value)}>
        {names.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
    </label>
  );
}
