// Lets a person change the arguments of a call, as JSON. The server checks them against the tool's schema.
import { useState } from "react";
import type { Json } from "../types";

interface Props {
  args: { [name: string]: Json };
  onDone: (args: { [name: string]: Json }) => void;
  onCancel: () => void;
}

export function ArgumentsEditor({ args, onDone, onCancel }: Props) {
  const [text, setText] = useState(() => JSON.stringify(args, null, 2));
  const { value, problem } = parse(text);
  return (
    <div className="arguments-editor">
      <textarea aria-label="Arguments as JSON" autoFocus spellCheck={false} rows={Math.min(20, text.split("\n").length + 1)} value={text} onChange={(event) => setText(event.target.value)} />
      {problem && <p className="small" role="alert">✕ {problem}</p>}
      <div className="actions">
        <button className="primary" disabled={value === null} onClick={() => value && onDone(value)}>Use these</button>
        <button onClick={onCancel}>Leave as it was</button>
      </div>
    </div>
  );
}

function parse(text: string): { value: { [name: string]: Json } | null; problem: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return { value: value as { [name: string]: Json }, problem: "" };
    return { value: null, problem: "The arguments are one JSON object." };
  } catch (error) {
    return { value: null, problem: error instanceof Error ? error.message : String(error) };
  }
}
