// The rules in force, as /v1/policies has them.
import type { Json, LabelledRead } from "../types";

export type Verdict = "allow" | "ask" | "deny";

export interface Rule {
  verdict: Verdict;
  pattern: string;
  agent: string;
  when: string | null;
  reason: string | null;
  /** The file and the line. */
  place: string;
  /** The settings from which a change can remove it; null for a rule that stands elsewhere. */
  file: "user" | "project" | null;
  /** Only of a rule for requests to origins. */
  methods?: string[];
  allow_private?: boolean;
}

export interface Budget {
  pattern: string;
  agent: string;
  calls_per_run: number | null;
  calls_per_hour: number | null;
  concurrent: number | null;
  place: string;
}

export interface Policies {
  preset: string;
  meaning: string;
  preset_place: string;
  rules: Rule[];
  budgets: Budget[];
  denied_writes: { source: string; place: string }[];
  ignored: { setting: string; place: string; reason: string }[];
  agents: string[];
}

export interface Match extends Rule {
  wins: boolean;
  why: string;
}

export interface Explanation {
  tool: string;
  agent: string;
  args: { [name: string]: Json } | null;
  decision: { verdict: Verdict; reason: string | null; rule: string | null };
  preset: string;
  matches: Match[];
  budgets: Budget[];
  labels: string[];
  reads: LabelledRead[];
  hidden: boolean;
  change: string;
}

export const isEgress = (rule: Rule) => rule.methods !== undefined;

/** What a budget limits, in words. */
export function limitsOf({ calls_per_run, calls_per_hour, concurrent }: Budget): string {
  const parts = [
    calls_per_run !== null && `${calls_per_run.toLocaleString("en")} in a run`,
    calls_per_hour !== null && `${calls_per_hour.toLocaleString("en")} in an hour`,
    concurrent !== null && `${concurrent.toLocaleString("en")} at the same time`,
  ];
  return parts.filter(Boolean).join(", ");
}
