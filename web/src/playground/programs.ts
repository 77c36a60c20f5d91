// The programs of the playground. Where one comes from stands in the address: an example, a run, or nothing. What somebody has
// changed of it stays in this tab of the browser, so that it survives a reload.
import { useState } from "react";
import type { Json } from "../types";

export interface Example {
  name: string;
  title: string;
  language: string;
  code: string;
}

export interface Program {
  code: string;
  language: string;
  /** The input as JSON text; empty without one. */
  input: string;
  /** For whom it runs; empty for whoever runs it. */
  agent: string;
}

const KEY = "gloveport-playground";
const MAX_DRAFTS = 12;
const STARTERS: Record<string, string> = {
  typescript: "// A program's last expression is its result\nconst words = [\"hello\", \"world\"];\nwords.join(\" \");\n",
  python: "# A program's last expression is its result\nwords = [\"hello\", \"world\"]\n\" \".join(words)\n",
};

export const starter = (language: string): Program => ({ code: STARTERS[language] ?? "", language, input: "", agent: "" });

type Drafts = Record<string, Program>;

function kept(): Drafts {
  try {
    return (JSON.parse(sessionStorage.getItem(KEY) ?? "{}") ?? {}) as Drafts;
  } catch {
    return {}; // storage can be turned off
  }
}

function keep(drafts: Drafts): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(drafts));
  } catch {
    return; // it is full: the draft then lasts until the page is left
  }
}

const isSame = (one: Program, other: Program) =>
  one.code === other.code && one.language === other.language && one.input === other.input && one.agent === other.agent;

/** The program of this origin: as it came, until somebody changes it. */
export function useProgram(origin: string, came: Program | null) {
  const [drafts, setDrafts] = useState(kept);
  const draft = drafts[origin];
  const set = (of: string, now: Program | null) => {
    setDrafts((old) => {
      const rest = Object.entries(old).filter(([name]) => name !== of);
      const next: Drafts = Object.fromEntries((now ? [...rest, [of, now] as const] : rest).slice(-MAX_DRAFTS));
      keep(next);
      return next;
    });
  };
  return {
    program: draft ?? came,
    isEdited: draft !== undefined && came !== null && !isSame(draft, came),
    edit: (change: Partial<Program>) => {
      const now = draft ?? came;
      if (now) set(origin, { ...now, ...change });
    },
    reset: () => set(origin, null),
    /** Take a program along to another origin. */
    take: (of: string, program: Program) => set(of, program),
  };
}

/** The value of an input: undefined without one; a text that is no JSON throws. */
export function inputOf(text: string): Json | undefined {
  return text.trim() ? (JSON.parse(text) as Json) : undefined;
}

/** What is wrong with the text of an input; empty if nothing is. */
export function problemOfInput(text: string): string {
  try {
    inputOf(text);
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
