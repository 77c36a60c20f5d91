// Where times stand on the axis. Long stretches in which a run only waits are collapsed, so that a run which waited for a
// person over the night still shows what it did.
import type { Call } from "../types";

export interface Span {
  start: number;
  end: number;
  /** Until when it waited for a person. */
  asked: number;
}

export interface Stretch {
  from: number;
  to: number;
}

export interface Axis {
  /** From seconds to a part of the width, 0 to 1. */
  at: (seconds: number) => number;
  waits: Stretch[];
  ticks: number[];
}

const MIN_WAIT_SECONDS = 5;
const MIN_WAIT_SHARE = 0.5; // of all that the run did: a shorter wait is shown as long as it was
const WAIT_WIDTH = 0.14;
const TICKS = 5;

/** How long a call ran, without the time that it waited for a person. */
export const ranSeconds = (call: Call, seconds: number) => Math.max(0, seconds - (call.approval?.seconds ?? 0));

/** When a call was open. One that has not ended goes on until now. */
export function spanOf(call: Call, now: number): Span {
  const isOpen = ["running", "waiting", "queued"].includes(call.status);
  const end = call.seconds !== null ? call.started + call.seconds : isOpen ? Math.max(now, call.started) : call.started;
  const asked = call.status === "waiting" ? end : Math.min(end, call.started + (call.approval?.seconds ?? 0));
  return { start: call.started, end, asked };
}

/** The axis of a run that has these calls, from its start to its end. */
export function axisOf(spans: Span[], end: number): Axis {
  const total = Math.max(end, ...spans.map((span) => span.end), 0.001);
  const gaps = gapsBetween(spans.map((span) => ({ from: span.asked, to: span.end })), total);
  const idle = (stretches: Stretch[]) => stretches.reduce((sum, { from, to }) => sum + to - from, 0);
  const candidates = gaps.filter(({ from, to }) => to - from >= MIN_WAIT_SECONDS);
  const did = total - idle(candidates);
  const waits = candidates.filter(({ from, to }) => to - from >= did * MIN_WAIT_SHARE);
  const wide = Math.min(WAIT_WIDTH, 0.5 / Math.max(1, waits.length));
  const perSecond = (1 - wide * waits.length) / Math.max(total - idle(waits), 0.001);
  const at = (seconds: number) => {
    let x = 0;
    let last = 0;
    for (const { from, to } of waits) {
      if (seconds <= from) break;
      x += (from - last) * perSecond + wide * Math.min(1, (seconds - from) / (to - from));
      last = Math.min(seconds, to);
    }
    return Math.min(1, x + Math.max(0, seconds - last) * perSecond);
  };
  return { at, waits, ticks: ticksOf(total, total - idle(waits), waits) };
}

/** The stretches up to the end that none of these covers. */
function gapsBetween(busy: Stretch[], end: number): Stretch[] {
  const gaps: Stretch[] = [];
  let last = 0;
  for (const { from, to } of busy.sort((a, b) => a.from - b.from)) {
    if (from > last) gaps.push({ from: last, to: from });
    last = Math.max(last, to);
  }
  if (end > last) gaps.push({ from: last, to: end });
  return gaps;
}

function ticksOf(total: number, did: number, waits: Stretch[]): number[] {
  const rough = Math.max(did / TICKS, 0.000_1);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * ([1, 2, 5, 10].find((times) => times * unit >= rough) ?? 10);
  const ticks: number[] = [];
  let from = 0;
  for (const wait of [...waits, { from: total, to: total }]) {
    for (let tick = Math.ceil(from / step) * step; tick < wait.from - step / 5 && ticks.length < 4 * TICKS; tick += step) ticks.push(tick);
    from = wait.to;
  }
  return ticks;
}
