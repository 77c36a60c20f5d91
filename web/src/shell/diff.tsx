// The lines of a difference: what goes is quiet, what comes is strong, and each line keeps its sign.
import { Visible } from "./visible";

const MAX_LINES = 400;

export function Diff({ lines, label }: { lines: string[]; label: string }) {
  const shown = lines.filter((line) => !line.startsWith("--- ") && !line.startsWith("+++ ")).slice(0, MAX_LINES);
  return (
    <pre className="diff" aria-label={label} tabIndex={0}>
      {shown.map((line, at) => {
        const text = line.startsWith("@@") ? "⋯" : line;
        const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "gone" : "";
        return <div key={at} className={`diff-line ${kind}`}><Visible text={text || " "} limit={1_000} /></div>;
      })}
      {lines.length > MAX_LINES && <div className="quiet">… {lines.length - MAX_LINES} more lines</div>}
    </pre>
  );
}
