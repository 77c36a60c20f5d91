// What somebody can do with a run. What destroys or changes something outside asks first.
import { useState } from "react";
import { post, get } from "../api";
import { Copy } from "../shell/copy";
import { Confirm, Dialog } from "../shell/dialog";
import { Menu } from "../shell/menu";
import { JsonTree } from "../shell/json-tree";
import { navigate } from "../shell/router";
import { isAdmin, runsPrograms, useMe } from "../shell/session";
import { say, sayFailed } from "../shell/toasts";
import type { Json, Outcome, RunDetails } from "../types";
import { curlOfProgram } from "./curl";
import { SaveSnippet } from "./save-snippet";
import { Undone, type Rollback } from "./undone";

type Asking = "cancel" | "rollback" | "snippet" | null;
const FINAL = new Set(["completed", "failed", "cancelled"]);

export function Actions({ details, reload }: { details: RunDetails; reload: () => void }) {
  const me = useMe();
  const [asking, setAsking] = useState<Asking>(null);
  const [undone, setUndone] = useState<Rollback | null>(null);
  const [answer, setAnswer] = useState<{ title: string; value: Json } | null>(null);
  const { run, code } = details;
  const path = `/v1/runs/${encodeURIComponent(run.run)}`;
  const isFinal = FINAL.has(run.status);
  const act = (verb: string, done: (found: Json) => void) => void post<Json>(`${path}/${verb}`).then(done).catch(sayFailed).finally(reload);
  const replay = () =>
    act("replay", (found) => {
      const { difference } = found as { difference: Json };
      if (difference === null) say("Replayed with the recorded results: nothing differs.");
      else setAnswer({ title: "The replay did something else", value: difference });
    });
  const exported = async () => saveFile(`${run.run}.json`, await get<Json>(`${path}/export`));
  return (
    <div className="actions">
      {!isFinal && runsPrograms(me) && <button onClick={() => setAsking("cancel")}>Cancel</button>}
      {run.status === "interrupted" && runsPrograms(me) && (
        <button className="primary" onClick={() => act("resume", () => say("The run goes on."))}>Resume</button>
      )}
      {isFinal && runsPrograms(me) && <button onClick={replay}>Replay</button>}
      {runsPrograms(me) && <button onClick={() => navigate(`/playground?run=${encodeURIComponent(run.run)}`)}>Open in playground</button>}
      <Menu>
          <Copy text={() => curlOfProgram(code, run.language, location.origin)} label="Copy as curl" says="Copied. The token is a variable of your shell." />
          <button onClick={() => void exported().catch(sayFailed)}>Export</button>
          {run.status === "completed" && isAdmin(me) && <button onClick={() => setAsking("snippet")}>Save as snippet</button>}
          {isFinal && isAdmin(me) && <button className="destructive" onClick={() => setAsking("rollback")}>Roll back…</button>}
      </Menu>
      {asking === "cancel" && (
        <Confirm title="Cancel this run?" verb="Cancel the run" destructive onClose={() => setAsking(null)} onConfirm={async () => {
          await post<Outcome>(`${path}/cancel`);
          reload();
        }}>
          <p>It ends now. Writes that it has made stay made.</p>
        </Confirm>
      )}
      {asking === "rollback" && (
        <Confirm title="Roll back this run?" verb="Undo its writes" destructive onClose={() => setAsking(null)} onConfirm={async () => {
          // A call that undoes a write may ask, and wait for an answer on another page: so nothing here waits for the end.
          act("rollback", (found) => setUndone(found as unknown as Rollback));
          say("The writes are undone now. Those that ask wait with the approvals.");
        }}>
          <p>Its writes are undone, the last one first, where their tools say how. Rules and approvals hold, and what can't be undone is listed.</p>
        </Confirm>
      )}
      {asking === "snippet" && <SaveSnippet run={run.run} onClose={() => setAsking(null)} />}
      {undone && <Undone rollback={undone} onClose={() => setUndone(null)} />}
      {answer && <Dialog title={answer.title} onClose={() => setAnswer(null)}><JsonTree value={answer.value} /></Dialog>}
    </div>
  );
}

function saveFile(name: string, content: Json): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(content, null, 1)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
