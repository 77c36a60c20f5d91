// The arguments of a call as the JSON that is sent: nothing is left out, and what a reader would not see is marked.
import { Visible } from "../shell/visible";
import type { Json } from "../types";

const SHOWN_CHARS = 20_000;

export function ExactArguments({ args }: { args: Json }) {
  return <pre className="exact" tabIndex={0} aria-label="Arguments"><Visible text={JSON.stringify(args, null, 2)} limit={SHOWN_CHARS} /></pre>;
}
