// Saves the program of a run under a name, as a tool that programs can call.
import { useId, useState } from "react";
import { post } from "../api";
import { Confirm } from "../shell/dialog";
import { say } from "../shell/toasts";

export function SaveSnippet({ run, onClose }: { run: string; onClose: () => void }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const id = useId();
  const save = async () => {
    await post("/v1/snippets", { run, name, description });
    say(`Saved: programs can call it as tools.snippets.${name}.`);
  };
  return (
    <Confirm title="Save as snippet" verb="Save" onConfirm={save} onClose={onClose}>
      <p className="quiet">Programs can then call it as <code>tools.snippets.{name || "name"}</code>, with the same rules.</p>
      <label htmlFor={`${id}-name`}>Name</label>
      <input id={`${id}-name`} value={name} spellCheck={false} autoFocus onChange={(event) => setName(event.target.value)} />
      <label htmlFor={`${id}-what`}>What it does</label>
      <input id={`${id}-what`} value={description} onChange={(event) => setDescription(event.target.value)} />
    </Confirm>
  );
}
