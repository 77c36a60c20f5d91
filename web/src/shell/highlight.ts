// Colours a program with the parsers of the editor. It only reads the text: nothing of it becomes markup.
import { classHighlighter, highlightCode } from "@lezer/highlight";
import { parser as javascript } from "@lezer/javascript";
import { parser as python } from "@lezer/python";

/** From a program to its lines, each as pieces of text with the classes of their kind. */
export type Colourist = (code: string) => [string, string][][];

export function colouristOf(language: string): Colourist {
  const parser = language === "python" ? python : javascript.configure({ dialect: "ts" });
  return (code) => {
    const lines: [string, string][][] = [[]];
    highlightCode(
      code,
      parser.parse(code),
      classHighlighter,
      (text, classes) => lines.at(-1)?.push([text, classes]),
      () => lines.push([]),
    );
    return lines;
  };
}
