// Makes a token. It is shown once: the server keeps a digest alone.
import { useId, useState } from "react";
import { asApiError, post, type ApiError } from "../api";
import { Copy } from "../shell/copy";
import { Dialog } from "../shell/dialog";
import { Problem } from "../shell/states";
import type { Role } from "../types";
import { ROLES } from "./agents";
import { UseToken } from "./use-token";

interface Made {
  name: string;
  role: Role;
  token: string;
}

interface Props {
  /** A name to begin with: an agent of the settings that has no token yet. */
  named: string;
  configured: string[];
  onMade: () => void;
  onClose: () => void;
}

export function AddAgent({ named, configured, onMade, onClose }: Props) {
  const [name, setName] = useState(named);
  const [role, setRole] = useState<Role>("agent");
  const [made, setMade] = useState<Made | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const make = async () => {
    setBusy(true);
    setError(null);
    try {
      setMade(await post<Made>("/v1/agents", { name: name.trim(), role }));
      onMade();
    } catch (failure) {
      setError(asApiError(failure));
    } finally {
      setBusy(false);
    }
  };
  if (made) return <Shown made={made} isRefused={(role === "agent" || role === "host") && !configured.includes(made.name)} onClose={onClose} />;
  return (
    <Dialog title="Make a token" onClose={onClose} actions={<button className="primary" disabled={busy || !name.trim()} onClick={() => void make()}>Make the token</button>}>
      <form className="agent-form" onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() && !busy) void make();
      }}>
        <label htmlFor={`${id}-name`}>Name</label>
        <input id={`${id}-name`} autoFocus spellCheck={false} autoComplete="off" list={`${id}-names`} value={name} onChange={(event) => setName(event.target.value)} />
        <datalist id={`${id}-names`}>{configured.map((one) => <option key={one} value={one} />)}</datalist>
        <fieldset>
          <legend>Role</legend>
          {ROLES.map(([one, meaning]) => (
            <label key={one}><input type="radio" name={`${id}-role`} checked={role === one} onChange={() => setRole(one)} /> <span><strong>{one}</strong> <span className="quiet">{meaning}</span></span></label>
          ))}
        </fieldset>
      </form>
      {error && <Problem error={error} />}
    </Dialog>
  );
}

function Shown({ made, isRefused, onClose }: { made: Made; isRefused: boolean; onClose: () => void }) {
  return (
    <Dialog title={`The token of ${made.name}`} onClose={onClose} wide>
      <p className="note"><strong>Copy it now: it is shown once.</strong> {made.role === "admin" || made.role === "approver" ? "Keep it where no agent reads it." : "Whoever has it counts as this one."}</p>
      <div className="command"><code className="token">{made.token}</code><Copy text={made.token} label="Copy the token" /></div>
      {isRefused && (
        <>
          <p className="small">The settings have no agent of this name: until they do, the server refuses this token. In gloveport.toml:</p>
          <div className="command recipe"><pre>{`[agents.${made.name}]\ntools = ["*"]`}</pre><Copy text={`[agents.${made.name}]\ntools = ["*"]\n`} /></div>
        </>
      )}
      <h3>Use it</h3>
      <div className="command recipe"><pre>export GLOVEPORT_TOKEN={made.token}</pre><Copy text={`export GLOVEPORT_TOKEN=${made.token}`} /></div>
      <UseToken role={made.role} />
    </Dialog>
  );
}
