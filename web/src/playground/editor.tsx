// The editor of programs. CodeMirror is in a chunk of its own, which only this page loads.
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { useEffect, useImperativeHandle, useRef, type Ref } from "react";
import type { ApiError } from "../api";
import { rangeOf, type Finding, type Subject } from "./checks";
import { basics, extensionsFor, fromPage, setMarks } from "./editor-extensions";

export interface EditorHandle {
  /** Put the cursor somewhere, and look there. */
  goTo: (place: { line: number; column: number }) => void;
}

interface Props extends Subject {
  code: string;
  /** Lines that belong to what is chosen elsewhere on the page. */
  chosen: ReadonlySet<number>;
  failed: number | null;
  onChange: (code: string) => void;
  onFindings: (found: Finding[], error: ApiError | null) => void;
  onRun: (mode: "run" | "plan") => void;
  handle: Ref<EditorHandle>;
}

export default function Editor({ code, language, agent, chosen, failed, onChange, onFindings, onRun, handle }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const about = useRef(new Compartment());
  const latest = useRef({ onChange, onFindings, onRun });
  latest.current = { onChange, onFindings, onRun };
  useEffect(() => {
    if (!place.current) return;
    const changed = EditorView.updateListener.of((update) => {
      if (update.docChanged && !update.transactions.some((one) => one.annotation(fromPage))) latest.current.onChange(update.state.doc.toString());
    });
    const run = (mode: "run" | "plan") => () => {
      latest.current.onRun(mode);
      return true;
    };
    const keys = Prec.highest(keymap.of([{ key: "Mod-Enter", run: run("run") }, { key: "Shift-Mod-Enter", run: run("plan") }]));
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({ doc: code, extensions: [keys, about.current.of([]), changed, basics] }),
    });
    view.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => {
    const report = (found: Finding[], error: ApiError | null) => latest.current.onFindings(found, error);
    view.current?.dispatch({ effects: about.current.reconfigure(extensionsFor({ language, agent }, report)) });
  }, [language, agent]);
  useEffect(() => {
    const now = view.current;
    if (!now || now.state.doc.toString() === code) return;
    now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: code }, annotations: fromPage.of(true) });
  }, [code]);
  useEffect(() => {
    view.current?.dispatch({ effects: setMarks.of({ chosen, failed }) });
  }, [chosen, failed]);
  useImperativeHandle(handle, () => ({
    goTo: (at) => {
      const now = view.current;
      if (!now) return;
      const { from } = rangeOf(now.state.doc, at);
      now.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      now.focus();
    },
  }));
  return <div className="editor" ref={place} />;
}
