// A program, with numbers of its lines. A line may be marked, and may carry what the page knows about it.
import { memo, useEffect, useRef, useState, type ReactNode } from "react";
import { Visible } from "./visible";
import type { Colourist } from "./highlight";

export interface LineNote {
  line: number;
  note: ReactNode;
}

interface Props {
  code: string;
  language: string;
  /** Lines that belong to what is chosen elsewhere on the page. */
  chosen?: ReadonlySet<number>;
  failed?: LineNote | null;
  /** Lines that can be clicked. */
  clickable?: ReadonlySet<number>;
  onLine?: (line: number) => void;
}

const MAX_LINES = 5_000;

export function CodeView({ code, language, chosen, failed, clickable, onLine }: Props) {
  const colour = useColourist(language, code.length);
  const list = useRef<HTMLOListElement>(null);
  const lines = code.replace(/\r?\n$/, "").split("\n");
  const coloured = colour?.(lines.join("\n"));
  const first = chosen?.size ? Math.min(...chosen) : null;
  useEffect(() => {
    if (first !== null) list.current?.children[first - 1]?.scrollIntoView({ block: "nearest" });
  }, [first]);
  return (
    <ol className="code" ref={list} aria-label="The program">
      {lines.slice(0, MAX_LINES).map((text, at) => (
        <CodeLine
          key={at}
          number={at + 1}
          text={text}
          tokens={coloured?.[at]}
          chosen={chosen?.has(at + 1) ?? false}
          failed={failed?.line === at + 1 ? failed.note : null}
          onLine={clickable?.has(at + 1) ? onLine : undefined}
        />
      ))}
      {lines.length > MAX_LINES && <li className="quiet">… {lines.length - MAX_LINES} more lines</li>}
    </ol>
  );
}

interface LineProps {
  number: number;
  text: string;
  tokens: [string, string][] | undefined;
  chosen: boolean;
  failed: ReactNode;
  onLine: ((line: number) => void) | undefined;
}

const CodeLine = memo(function CodeLine({ number, text, tokens, chosen, failed, onLine }: LineProps) {
  const content = tokens ? tokens.map(([piece, kind], at) => <span key={at} className={kind}><Visible text={piece} limit={4_000} /></span>) : <Visible text={text} limit={4_000} />;
  const classes = ["line", chosen && "chosen", failed && "failed"].filter(Boolean).join(" ");
  return (
    <li className={classes} data-line={number}>
      {onLine ? (
        <button className="line-number" aria-label={`Line ${number}: show its calls`} aria-pressed={chosen} onClick={() => onLine(number)}>{number}</button>
      ) : (
        <span className="line-number" aria-hidden="true">{number}</span>
      )}
      <code onClick={onLine && (() => onLine(number))}>{content}</code>
      {failed && <div className="line-note" role="note">{failed}</div>}
    </li>
  );
});

const MAX_COLOURED_CHARS = 200_000;

/** What colours a program, once it is loaded; a huge program stays plain. */
function useColourist(language: string, chars: number): Colourist | null {
  const [colour, setColour] = useState<{ of: string; with: Colourist } | null>(null);
  useEffect(() => {
    let gone = false;
    if (chars <= MAX_COLOURED_CHARS)
      void import("./highlight").then(({ colouristOf }) => !gone && setColour({ of: language, with: colouristOf(language) }));
    return () => {
      gone = true;
    };
  }, [language, chars]);
  return colour?.of === language ? colour.with : null;
}
