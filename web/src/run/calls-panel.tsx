// The calls of a run: a tree of steps, and beside it when each call was open. Only the rows in view are in the document, so
// that a thousand calls stay smooth.
import { memo, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { Badge } from "../shell/badge";
import { duration } from "../shell/time";
import { visibleText } from "../shell/visible";
import type { Call } from "../types";
import { rowsOf, type CallState, type Row } from "./rows";
import { axisOf, ranSeconds, spanOf, type Axis, type Span } from "./timeline";

const ROW_PX = 30;
const ROWS_BEYOND = 12;
const MAX_ROWS_SHOWN = 18;
const MAX_ARGS_CHARS = 80;

interface Props {
  calls: Call[];
  fresh: Call[];
  /** Seconds from the start of the run until now, or until its end. */
  now: number;
  chosen: number | null;
  marked: ReadonlySet<number>;
  onChoose: (call: number | null) => void;
}

export function CallsPanel({ calls, fresh, now, chosen, marked, onChoose }: Props) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const open = useMemo(() => [...calls, ...fresh], [calls, fresh]);
  const rows = useMemo(() => rowsOf(open, closed), [open, closed]);
  const spans = useMemo(() => new Map(calls.map((call) => [call.id, spanOf(call, now)])), [calls, now]);
  const axis = useMemo(() => axisOf([...spans.values()], now), [spans, now]);
  const toggle = (key: string) => setClosed((old) => (old.has(key) ? new Set([...old].filter((one) => one !== key)) : new Set([...old, key])));
  const { list, from, to, onScroll } = useWindow(rows, chosen);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const ids = rows.flatMap((row) => (row.kind === "call" ? [row.call.id] : []));
    onChoose(ids[Math.max(0, Math.min(ids.length - 1, chosen === null ? 0 : ids.indexOf(chosen) + step))] ?? null);
  };
  return (
    <section className="card calls-panel" aria-label="Calls">
      <AxisHead axis={axis} count={open.length} />
      <div className="calls-scroll" ref={list} onScroll={onScroll} onKeyDown={move} tabIndex={0} role="group" aria-label="Calls and when each was open">
        <div className="calls-rows" style={{ height: rows.length * ROW_PX }}>
          <Waits axis={axis} />
          {rows.slice(from, to).map((row, at) => (
            <RowView
              key={row.key}
              row={row}
              top={(from + at) * ROW_PX}
              bars={barsOf(row, spans, axis)}
              isChosen={row.kind === "call" && row.call.id === chosen}
              isMarked={row.kind === "call" && marked.has(row.call.id)}
              onChoose={onChoose}
              onToggle={toggle}
            />
          ))}
        </div>
      </div>
    </section>
  );
}

/** The part of a list that is in view, and scrolling to what is chosen elsewhere. */
function useWindow(rows: Row[], chosen: number | null) {
  const list = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const at = chosen === null ? -1 : rows.findIndex((row) => row.kind === "call" && row.call.id === chosen);
  useEffect(() => {
    const scroller = list.current;
    if (!scroller || at < 0) return;
    const y = at * ROW_PX;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    else if (y + ROW_PX > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = y + ROW_PX - scroller.clientHeight;
  }, [at]);
  const from = Math.max(0, Math.floor(top / ROW_PX) - ROWS_BEYOND);
  const to = from + MAX_ROWS_SHOWN + 2 * ROWS_BEYOND;
  const onScroll = () => setTop(Math.round((list.current?.scrollTop ?? 0) / ROW_PX / 4) * ROW_PX * 4); // not at every pixel
  return { list, from, to, onScroll };
}

function AxisHead({ axis, count }: { axis: Axis; count: number }) {
  return (
    <div className="calls-head">
      <h2>Calls <span className="quiet">{count.toLocaleString("en")}</span></h2>
      <div className="axis" aria-hidden="true">
        {labelled(axis).map(([tick, isRare]) => <span key={tick} className={isRare ? "" : "frequent"} style={{ left: `${axis.at(tick) * 100}%` }}>{tick === 0 ? "0" : duration(tick)}</span>)}
      </div>
    </div>
  );
}

const MIN_TICK_SHARE = 0.17; // of the width of the axis, which a label needs
const MIN_RARE_SHARE = 0.46; // the same on a narrow screen

/** The ticks that have room for their labels, and whether there is room on a narrow screen too. */
function labelled(axis: Axis): [number, boolean][] {
  const found: [number, boolean][] = [];
  const isFree = (x: number, share: number, taken: [number, boolean][]) => x <= 1 - share && taken.every(([tick]) => x - axis.at(tick) >= share);
  for (const tick of axis.ticks) {
    const x = axis.at(tick);
    if (isFree(x, MIN_TICK_SHARE, found)) found.push([tick, isFree(x, MIN_RARE_SHARE, found.filter(([, isRare]) => isRare))]);
  }
  return found;
}

function Waits({ axis }: { axis: Axis }) {
  return (
    <div className="waits">
      {axis.waits.map(({ from, to }) => (
        <div key={from} className="wait" style={{ left: `${axis.at(from) * 100}%`, width: `${(axis.at(to) - axis.at(from)) * 100}%` }}>
          <span>{duration(to - from)}</span>
        </div>
      ))}
    </div>
  );
}

interface Bar {
  kind: CallState | "step";
  left: number;
  width: number;
}

/** What a row draws: the time that it asked, and the time that it ran. */
function barsOf(row: Row, spans: Map<number, Span>, axis: Axis): Bar[] {
  const bar = (kind: Bar["kind"], from: number, to: number): Bar => ({ kind, left: axis.at(from), width: axis.at(to) - axis.at(from) });
  if (row.kind === "step") {
    const inside = row.calls.flatMap((call) => spans.get(call.id) ?? []);
    return inside.length ? [bar("step", Math.min(...inside.map((span) => span.start)), Math.max(...inside.map((span) => span.end)))] : [];
  }
  const span = spans.get(row.call.id);
  if (!span) return [];
  const bars = row.state === "asking" ? [] : [bar(row.state, span.asked, span.end)];
  return span.asked > span.start ? [bar("asking", span.start, span.asked), ...bars] : bars;
}

interface RowProps {
  row: Row;
  top: number;
  bars: Bar[];
  isChosen: boolean;
  isMarked: boolean;
  onChoose: (call: number | null) => void;
  onToggle: (key: string) => void;
}

const RowView = memo(
  function RowView({ row, top, bars, isChosen, isMarked, onChoose, onToggle }: RowProps) {
    const classes = ["call-row", row.kind, isChosen && "chosen", isMarked && "marked"].filter(Boolean).join(" ");
    const act = () => (row.kind === "step" ? onToggle(row.key) : onChoose(isChosen ? null : row.call.id));
    const pressed = row.kind === "step" ? { "aria-expanded": row.isOpen } : { "aria-pressed": isChosen, "data-call": row.call.id };
    return (
      <button className={classes} style={{ top }} onClick={act} tabIndex={-1} {...pressed}>
        <span className="call-name" style={{ paddingLeft: 10 + row.depth * 14 }}>
          {row.kind === "step" ? (
            <><span aria-hidden="true">{row.isOpen ? "▾" : "▸"}</span> {visibleText(row.name)} <span className="quiet">{row.calls.length}</span></>
          ) : (
            <><Badge status={row.state} word="" /><span className="hidden">{row.state}: </span>{visibleText(row.call.tool)}<span className="quiet call-args">{shortArgs(row.call)}</span></>
          )}
        </span>
        <span className="bars" aria-hidden="true">
          {bars.map((bar, at) => <span key={at} className={`bar ${bar.kind}`} style={{ left: `${bar.left * 100}%`, width: `max(3px, ${bar.width * 100}%)` }} />)}
        </span>
        <span className="call-time">{row.kind === "call" && row.call.seconds !== null ? duration(ranSeconds(row.call, row.call.seconds)) : ""}</span>
      </button>
    );
  },
  (old, now) =>
    old.row === now.row && old.top === now.top && old.isChosen === now.isChosen && old.isMarked === now.isMarked &&
    old.onChoose === now.onChoose && old.bars.length === now.bars.length &&
    old.bars.every((bar, at) => bar.left === now.bars[at]?.left && bar.width === now.bars[at].width && bar.kind === now.bars[at].kind),
);

function shortArgs(call: Call): string {
  const { args } = call;
  if (args === null || typeof args !== "object" || Object.keys(args).length === 0) return "";
  const values = Object.values(args).slice(0, 4).map((value) => (typeof value === "string" ? value.slice(0, MAX_ARGS_CHARS) : JSON.stringify(value).slice(0, MAX_ARGS_CHARS)));
  return visibleText(values.join(", ").slice(0, MAX_ARGS_CHARS));
}
