// Which lines of a program make which calls. A line belongs to a tool if it names it; a program can also reach a tool in ways
// that no line shows, and then there is none.

/** The lines of a program that name each tool, by the path of the tool. */
export function linesOfTools(code: string, tools: Iterable<string>): Map<string, number[]> {
  const lines = code.split("\n");
  const found = new Map<string, number[]>();
  for (const tool of new Set(tools)) {
    const last = tool.split(".").at(-1) ?? tool;
    const whole = new RegExp(`(?<![\\w$.])(?:tools|codemode)\\??\\.${tool.split(".").map(escaped).join("\\s*\\??\\.\\s*")}(?![\\w$])`);
    const short = new RegExp(`(?:\\.|\\b)${escaped(last)}\\s*(?:\\?\\.)?\\(`);
    const exact = numbersOf(lines, whole);
    found.set(tool, exact.length ? exact : numbersOf(lines, short));
  }
  return found;
}

const escaped = (text: string) => text.replaceAll(/[^\w]/g, "\\$&");

function numbersOf(lines: string[], pattern: RegExp): number[] {
  return lines.flatMap((text, at) => (pattern.test(text) ? [at + 1] : []));
}
