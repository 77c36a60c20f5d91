// The input of the program, as JSON.
import { useId, useState } from "react";
import { Visible } from "../shell/visible";
import { problemOfInput } from "./programs";

export function Input({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const id = useId();
  const [startsOpen] = useState(text !== "");
  const problem = problemOfInput(text);
  return (
    <details className="bench-input" open={startsOpen || undefined}>
      <summary>Input{problem && <span className="stops"> ✕ no valid JSON</span>}</summary>
      <label className="hidden" htmlFor={id}>The value of `input`, as JSON</label>
      <textarea
        id={id}
        rows={Math.max(2, Math.min(10, text.split("\n").length))}
        spellCheck={false}
        placeholder={'{"customer": "ada"}'}
        aria-invalid={problem !== ""}
        aria-describedby={problem ? `${id}-problem` : undefined}
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
      {problem ? <p className="small" id={`${id}-problem`}><Visible text={problem} limit={200} /></p> : <p className="small quiet">JSON. The program has it as <code>input</code>.</p>}
    </details>
  );
}
