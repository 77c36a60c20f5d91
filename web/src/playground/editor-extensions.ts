// What the editor is made of: keys, colours, marks, checks and completion.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { Annotation, EditorState, RangeSetBuilder, StateEffect, StateField, type Extension, type Text } from "@codemirror/state";
import {
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  type DecorationSet,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import type { ApiError } from "../api";
import { DECEPTIVE } from "../shell/visible";
import { checker, completer, type Finding, type Subject } from "./checks";
import { theme } from "./editor-theme";

/** On a change that the page makes, and nobody has typed. */
export const fromPage = Annotation.define<boolean>();

/** Lines of the program that belong to what is shown of its run. */
export interface Marks {
  chosen: ReadonlySet<number>;
  failed: number | null;
}

export const setMarks = StateEffect.define<Marks>();

const markedLines = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (lines, change) => {
    for (const effect of change.effects) if (effect.is(setMarks)) return decorationsOf(effect.value, change.state.doc);
    return lines.map(change.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

function decorationsOf({ chosen, failed }: Marks, doc: Text): DecorationSet {
  const lines = [...new Set([...chosen, ...(failed === null ? [] : [failed])])].filter((line) => line >= 1 && line <= doc.lines);
  const made = new RangeSetBuilder<Decoration>();
  for (const line of lines.sort((a, b) => a - b)) {
    const { from } = doc.line(line);
    made.add(from, from, Decoration.line({ class: line === failed ? "failed" : "chosen" }));
  }
  return made.finish();
}

/** An invisible character as the other pages show it. */
function mark(code: number): HTMLElement {
  const shown = document.createElement("span");
  shown.className = "mark";
  shown.title = "an invisible character";
  shown.textContent = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  return shown;
}

/** Text that is typed over a selection. Left to Chromium, it keeps the look of what was there in a style attribute, which the
 * policy of the pages forbids and reports. */
const typedOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { data, inputType, isComposing } = event;
    const { from, to, empty } = view.state.selection.main;
    if (inputType !== "insertText" || data === null || isComposing || empty) return false;
    const insert = () => view.state.update(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
    if (!view.state.facet(EditorView.inputHandler).some((handles) => handles(view, from, to, data, insert))) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});

/** The policy of the pages allows styles with this nonce alone. */
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";

export const basics: Extension = [
  EditorView.cspNonce.of(nonce),
  lineNumbers(),
  lintGutter(),
  highlightSpecialChars({ addSpecialChars: DECEPTIVE, render: mark }),
  history(),
  drawSelection(),
  indentOnInput(),
  bracketMatching(),
  closeBrackets(),
  autocompletion({ closeOnBlur: true, maxRenderedOptions: 60 }),
  highlightActiveLine(),
  highlightActiveLineGutter(),
  markedLines,
  typedOver,
  EditorView.lineWrapping,
  EditorView.contentAttributes.of({ "aria-label": "Program", tabindex: "0", spellcheck: "false", "aria-describedby": "editor-keys" }),
  syntaxHighlighting(classHighlighter),
  keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
  theme,
];

/** What depends on the language, and on whose tools count. */
export function extensionsFor(subject: Subject, report: (found: Finding[], error: ApiError | null) => void): Extension {
  const isPython = subject.language === "python";
  const completions = [{ autocomplete: completer(subject) }]; // the same object each time, or the editor asks again and again
  return [
    isPython ? python() : javascript({ typescript: subject.language === "typescript" }),
    indentUnit.of(isPython ? "    " : "  "),
    EditorState.tabSize.of(isPython ? 4 : 2),
    EditorState.languageData.of(() => completions),
    checker(subject, report),
  ];
}
