// The differences between two values, member by member.
import { Visible } from "../shell/visible";
import type { Json } from "../types";

export interface Change {
  path: string;
  before: Json | undefined;
  after: Json | undefined;
}

const MAX_CHANGES = 200;

/** What differs between two values, with the path of each difference. */
export function changesBetween(before: Json | undefined, after: Json | undefined, path = ""): Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (!isRecord(before) || !isRecord(after)) return [{ path, before, after }];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => changesBetween(before[name], after[name], path ? `${path}.${name}` : name)).slice(0, MAX_CHANGES);
}

const isRecord = (value: Json | undefined): value is { [name: string]: Json } => value !== null && typeof value === "object" && !Array.isArray(value);
const shown = (value: Json | undefined) => (value === undefined ? "nothing" : JSON.stringify(value));

export function Changes({ before, after, title }: { before: Json; after: Json; title: string }) {
  const changes = changesBetween(before, after);
  if (changes.length === 0) return <p className="small quiet">Nothing differs.</p>;
  return (
    <div className="changes">
      <h3>{title}</h3>
      <dl>
        {changes.map((change) => (
          <div key={change.path}>
            <dt><Visible text={change.path || "all"} limit={200} /></dt>
            <dd><del><Visible text={shown(change.before)} limit={500} /></del> <span aria-hidden="true">→</span> <ins><Visible text={shown(change.after)} limit={500} /></ins></dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
