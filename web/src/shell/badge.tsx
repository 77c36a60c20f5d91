// A status is a shape and a word, and never a colour alone.
const SHAPES: Record<string, string> = {
  running: "◐",
  waiting: "●",
  asking: "●",
  queued: "○",
  interrupted: "◌",
  unknown: "?",
  completed: "✓",
  ok: "✓",
  failed: "✕",
  cancelled: "–",
  planned: "◇",
};
const WORDS: Record<string, string> = { waiting: "needs you", asking: "needs you" };

export function Badge({ status, word }: { status: string; word?: string }) {
  return (
    <span className={`badge ${status}`}>
      <span className="shape" aria-hidden="true">{SHAPES[status] ?? "·"}</span>
      {word ?? WORDS[status] ?? status}
    </span>
  );
}
