// Reads the metrics that the server has for Prometheus, for a glance at them.
import { keptKey, problemOf, unreachable } from "../api";

export interface Sample {
  name: string;
  labels: { [name: string]: string };
  value: number;
}

const LINE = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g;

/** The samples of a text in the format of Prometheus. */
export function samplesOf(text: string): Sample[] {
  return text.split("\n").flatMap((line) => {
    const found = line.startsWith("#") ? null : LINE.exec(line);
    if (!found?.[1]) return [];
    const labels = [...(found[2] ?? "").matchAll(LABEL)].map((one) => [one[1] ?? "", (one[2] ?? "").replace(/\\(.)/g, (_, next: string) => (next === "n" ? "\n" : next))]);
    return [{ name: found[1], labels: Object.fromEntries(labels) as Sample["labels"], value: Number(found[3]) }];
  });
}

export async function loadMetrics(signal: AbortSignal): Promise<Sample[]> {
  const headers = { Accept: "text/plain", "X-Gloveport": keptKey() };
  const response = await fetch("/metrics", { credentials: "same-origin", signal, headers }).catch((error: unknown) => {
    throw signal.aborted ? error : unreachable();
  });
  if (!response.ok) throw problemOf(await response.json().catch(() => null), response.status);
  return samplesOf(await response.text());
}

/** The sum of the samples of a metric that have these labels. */
export function total(samples: Sample[], name: string, labels: Sample["labels"] = {}): number {
  return samples.filter((one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value)).reduce((sum, one) => sum + one.value, 0);
}

/** The parts of a metric by the values of a label, the largest first. */
export function partsBy(samples: Sample[], name: string, label: string): [string, number][] {
  const parts = new Map<string, number>();
  for (const one of samples) if (one.name === name) parts.set(one.labels[label] ?? "", (parts.get(one.labels[label] ?? "") ?? 0) + one.value);
  return [...parts].filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
}

/** The duration that a share of a histogram's observations stays below: about, as its buckets tell. Null without any. */
export function quantile(samples: Sample[], name: string, share: number): number | null {
  const buckets = new Map<number, number>();
  for (const { name: found, labels, value } of samples) {
    if (found !== `${name}_bucket`) continue;
    const bound = labels["le"] === "+Inf" ? Infinity : Number(labels["le"]);
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  const sorted = [...buckets].sort((a, b) => a[0] - b[0]);
  const wanted = (sorted.at(-1)?.[1] ?? 0) * share;
  if (wanted === 0) return null;
  let [low, below] = [0, 0];
  for (const [bound, count] of sorted) {
    if (count >= wanted) return bound === Infinity ? low : low + ((bound - low) * (wanted - below)) / (count - below);
    [low, below] = [bound, count];
  }
  return low;
}
