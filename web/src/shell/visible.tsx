// Text of programs, tools and agents: hostile until shown otherwise. React makes it text and never markup; here, what would
// deceive a reader becomes visible: control characters, ANSI sequences, text that runs backwards, characters without width.
import { memo, useState } from "react";

/** Characters that a reader would not see, or that change the order of others. */
export const DECEPTIVE = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
    "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb" +
    "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]|[\\ud800-\\udfff]",
  "gu",
);
const MARKS_PER_TEXT = 2_000;

/** Split text into plain pieces and the marks of characters that a reader would not see. */
export function visiblePieces(text: string): (string | { mark: string })[] {
  const pieces: (string | { mark: string })[] = [];
  let end = 0;
  for (const found of text.matchAll(DECEPTIVE)) {
    if (found[0] === "\r" && text[found.index + 1] === "\n") continue;
    if (found.index > end) pieces.push(text.slice(end, found.index));
    pieces.push({ mark: markOf(found[0]) });
    end = found.index + found[0].length;
    if (pieces.length > MARKS_PER_TEXT) {
      pieces.push({ mark: `${text.length - end} more characters, with many that are invisible` });
      return pieces;
    }
  }
  if (end < text.length) pieces.push(text.slice(end));
  return pieces;
}

const markOf = (character: string) => `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** Text with its deceptive characters replaced by their code points, for titles and attributes. */
export const visibleText = (text: string) => text.replace(DECEPTIVE, (found) => `⟨${markOf(found)}⟩`);

interface Props {
  text: string;
  limit?: number;
  /** Within a button there can be no other one: what is longer than the limit ends there with an ellipsis. */
  inButton?: boolean;
}

/** Text, inert and visible. What is longer than the limit is shown when somebody asks for it. */
export const Visible = memo(function Visible({ text, limit = 2_000, inButton = false }: Props) {
  const [all, setAll] = useState(false);
  const cut = !all && text.length > limit;
  const shown = cut ? text.slice(0, limit) : text;
  return (
    <bdi className="visible">
      {visiblePieces(shown).map((piece, at) =>
        typeof piece === "string" ? piece : <span key={at} className="mark" title="an invisible character">{piece.mark}</span>,
      )}
      {cut && inButton && "…"}
      {cut && !inButton && (
        <button className="more" onClick={() => setAll(true)}>
          show all {text.length.toLocaleString("en")} characters
        </button>
      )}
    </bdi>
  );
});
