// JSON as a tree that opens and closes. A secret is the name of what stands there.
import { useState } from "react";
import type { Json } from "../types";
import { Visible, visibleText } from "./visible";

const ROWS_AT_ONCE = 100;
const OPEN_DEPTH = 2;
const INLINE_CHARS = 100;
const INLINE_TEXT_CHARS = 60;
const TEXT_CHARS = 600;
const NAME_CHARS = 120;

interface Props {
  value: Json | undefined;
  name?: string;
  depth?: number;
  /** How deep the tree is open at first. */
  open?: number;
}

export function JsonTree({ value, name, depth = 0, open = OPEN_DEPTH }: Props) {
  if (value !== null && typeof value === "object") return <Branch value={value} depth={depth} open={open} {...(name === undefined ? {} : { name })} />;
  return (
    <div className="json-row">
      <Name name={name} />
      <Leaf value={value} />
    </div>
  );
}

function Branch({ value, name, depth, open }: { value: Json[] | { [name: string]: Json }; name?: string; depth: number; open: number }) {
  const isList = Array.isArray(value);
  const entries: [string, Json][] = isList ? value.map((each, at) => [String(at), each]) : Object.entries(value);
  const [isOpen, setOpen] = useState(depth < open && entries.length <= ROWS_AT_ONCE);
  const [rows, setRows] = useState(ROWS_AT_ONCE);
  const short = inlineJson(value);
  if (short !== null)
    return (
      <div className="json-row"><Name name={name} /><span className="json-inline"><Visible text={short} /></span></div>
    );
  const count = `${entries.length} ${isList ? "item" : "member"}${entries.length === 1 ? "" : "s"}`;
  return (
    <div className="json-branch">
      <button className="json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span> {name !== undefined && <span className="json-name">{shortName(name)}: </span>}
        <span className="quiet">{isList ? "[" : "{"} {count} {isList ? "]" : "}"}</span>
      </button>
      {isOpen && (
        <div className="json-children">
          {entries.slice(0, rows).map(([key, each]) => <JsonTree key={key} name={key} value={each} depth={depth + 1} open={open} />)}
          {entries.length > rows && (
            <button className="more" onClick={() => setRows(rows * 4)}>show more of {entries.length}</button>
          )}
        </div>
      )}
    </div>
  );
}

function Name({ name }: { name: string | undefined }) {
  return name === undefined ? null : <span className="json-name"><Visible text={name} limit={NAME_CHARS} />: </span>;
}

/** The name of a branch, as text alone: it stands in a button, which can hold no other one. */
const shortName = (name: string) => visibleText(name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS)}… (${name.length} characters)` : name);

function Leaf({ value }: { value: Json | undefined }) {
  if (typeof value === "string") return <span className="json-text">"<Visible text={value} limit={TEXT_CHARS} />"</span>;
  return <span className="json-atom">{value === undefined ? "undefined" : String(value)}</span>;
}

/** The value as one short line; null if it is not short. */
function inlineJson(value: Json[] | { [name: string]: Json }): string | null {
  const members = Object.values(value);
  if (members.length > 6 || members.some((each) => each !== null && typeof each === "object" && Object.keys(each).length > 0)) return null;
  if (members.some((each) => typeof each === "string" && each.length > INLINE_TEXT_CHARS)) return null;
  const text = JSON.stringify(value);
  return text.length <= INLINE_CHARS ? text.replaceAll('","', '", "').replaceAll(/,"/g, ', "').replaceAll('":', '": ') : null;
}
