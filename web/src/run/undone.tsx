// What became of the writes of a run that was rolled back, the last one first.
import { Dialog } from "../shell/dialog";
import { JsonTree } from "../shell/json-tree";
import { Visible } from "../shell/visible";
import type { Json } from "../types";

export interface Rollback {
  ok: boolean;
  writes: { call: number; tool: string; args: Json; status: string; undo: string | null; problem: string | null }[];
}

const isUndone = ({ status }: Rollback["writes"][number]) => status === "undone" || status === "undone-before";

export function Undone({ rollback, onClose }: { rollback: Rollback; onClose: () => void }) {
  const { writes } = rollback;
  const undone = writes.filter(isUndone).length;
  const title = writes.length === 0 ? "It has made no write" : undone === writes.length ? "All writes are undone" : `${undone} of ${writes.length} writes are undone`;
  return (
    <Dialog title={title} onClose={onClose}>
      <ol className="plan-writes">
        {writes.map((one) => (
          <li key={one.call}>
            <p>
              <span aria-hidden="true">{isUndone(one) ? "✓" : "✕"} </span>
              <strong><Visible text={one.tool} limit={200} /></strong>: <Visible text={one.status} limit={80} />
              {one.undo && <span className="quiet"> by <Visible text={one.undo} limit={200} /></span>}
            </p>
            <JsonTree value={one.args} />
            {one.problem && <p className="small"><Visible text={one.problem} limit={400} /></p>}
          </li>
        ))}
      </ol>
    </Dialog>
  );
}
