// Asks the server what an editor needs: what is wrong with a program, and what can follow at a place of it.
import type { Completion, CompletionContext, CompletionResult, CompletionSource } from "@codemirror/autocomplete";
import { linter, type Diagnostic } from "@codemirror/lint";
import type { Text } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { asApiError, post, type ApiError } from "../api";
import { visibleText } from "../shell/visible";

/** A problem of a program; `stops` if a run would be refused for it. Columns count characters, from 1. */
export interface Finding {
  line: number;
  column: number;
  message: string;
  code: string;
  hint: string | null;
  stops: boolean;
}

/** What the program is, beside its text. */
export interface Subject {
  language: string;
  agent: string;
}

interface Option {
  label: string;
  kind: "namespace" | "tool" | "argument" | "value";
  insert: string;
  detail: string;
  info: string;
}

const CHECK_DELAY_MS = 350;
const MAX_INFO_CHARS = 1_200;
const KINDS: Record<Option["kind"], string> = { namespace: "namespace", tool: "function", argument: "property", value: "constant" };
const COMMENT = /\/\*\*.*?\*\/\s*/g; // in a signature: what it says stands in the information beside it
const CAN_FOLLOW = /[\w$.({,'"]$|[({,:=]\s$/;

const asked = ({ language, agent }: Subject) => ({ language, ...(agent ? { agent } : {}) });

/** Where a problem stands in the text: from its place to the end of the word there. */
export function rangeOf(doc: Text, { line, column }: { line: number; column: number }): { from: number; to: number } {
  const at = doc.line(Math.max(1, Math.min(doc.lines, line)));
  const before = [...at.text].slice(0, Math.max(0, column - 1)).join("").length;
  const from = Math.min(at.from + before, at.to);
  const word = /^(?:[\w$]+(?:\.[\w$]+)*|.)/u.exec(at.text.slice(before))?.[0].length ?? 0;
  return { from, to: Math.min(from + word, at.to) };
}

/** Marks what the server finds, a moment after somebody has stopped typing. */
export function checker(subject: Subject, report: (found: Finding[], error: ApiError | null) => void) {
  let stop = new AbortController();
  const check = async (view: EditorView): Promise<Diagnostic[]> => {
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    try {
      const { problems } = await post<{ problems: Finding[] }>("/v1/check", { code: view.state.doc.toString(), ...asked(subject) }, { signal });
      report(problems, null);
      return problems.map((found) => ({
        ...rangeOf(view.state.doc, found),
        severity: found.stops ? "error" : "warning",
        message: visibleText([found.message, found.hint].filter(Boolean).join("\n")),
      }));
    } catch (error) {
      if (!signal.aborted) report([], asApiError(error));
      return [];
    }
  };
  return linter(check, { delay: CHECK_DELAY_MS });
}

/** Completes tools, arguments and values as the server knows them. */
export function completer(subject: Subject): CompletionSource {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    if (!context.explicit && !context.matchBefore(CAN_FOLLOW)) return null;
    const stop = new AbortController();
    context.addEventListener("abort", () => stop.abort());
    const body = { code: context.state.doc.toString(), offset: context.pos, ...asked(subject) };
    try {
      const { start, options } = await post<{ start: number; options: Option[] }>("/v1/complete", body, { signal: stop.signal });
      return options.length ? { from: start, options: options.map(shown), filter: false } : null;
    } catch {
      return null; // completion is a help: nobody wants a notice for each key
    }
  };
}

function shown({ label, kind, insert, detail, info }: Option): Completion {
  const about = visibleText(info.length > MAX_INFO_CHARS ? `${info.slice(0, MAX_INFO_CHARS)}…` : info);
  return { label: visibleText(label), type: KINDS[kind], apply: insert, detail: visibleText(detail.replace(COMMENT, "")), ...(about ? { info: about } : {}) };
}
