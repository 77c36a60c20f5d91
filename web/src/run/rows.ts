// The calls of a run as the rows of a tree: steps group calls, and a group can be closed.
import type { Call } from "../types";

export type CallState = "queued" | "asking" | "running" | "ok" | "failed" | "unknown" | "planned";

export interface CallRow {
  kind: "call";
  key: string;
  depth: number;
  call: Call;
  state: CallState;
}

export interface StepRow {
  kind: "step";
  key: string;
  depth: number;
  name: string;
  calls: Call[];
  isOpen: boolean;
}

export type Row = CallRow | StepRow;

const UNKNOWN = /\boutcome-unknown\b/;

/** What became of a call, in one word. */
export function stateOf(call: Call): CallState {
  if (call.status === "waiting") return "asking";
  if (call.status === "failed" && UNKNOWN.test(call.error ?? "")) return "unknown";
  return call.status;
}

/** The rows of a run, calls in the order in which they started, each below the steps that it was made in. */
export function rowsOf(calls: Call[], closed: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  addRows(rows, calls, closed, "", 0);
  return rows;
}

function addRows(rows: Row[], calls: Call[], closed: ReadonlySet<string>, path: string, depth: number): void {
  const groups = new Map<string, Call[]>();
  for (const call of calls) {
    const name = stepsOf(call)[depth];
    const key = name === undefined ? `call ${call.id}` : `step ${path}/${name}`;
    const members = groups.get(key);
    if (members) members.push(call);
    else groups.set(key, [call]);
  }
  for (const [key, members] of groups) {
    const [first] = members;
    if (!first) continue;
    const name = stepsOf(first)[depth];
    if (name === undefined) {
      rows.push({ kind: "call", key, depth, call: first, state: stateOf(first) });
      continue;
    }
    const isOpen = !closed.has(key);
    rows.push({ kind: "step", key, depth, name, calls: members, isOpen });
    if (isOpen) addRows(rows, members, closed, `${path}/${name}`, depth + 1);
  }
}

const stepsOf = (call: Call) => (call.step ? call.step.split("/") : []);
