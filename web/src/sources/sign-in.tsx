// Signs in to the account of a source: first the server that would be asked, then the link, then what became of it.
import { useEffect, useId, useRef, useState } from "react";
import { asApiError, get, post, type ApiError } from "../api";
import { Copy } from "../shell/copy";
import { Problem } from "../shell/states";
import { Visible } from "../shell/visible";
import type { SignInState } from "../types";
import { Command } from "./source-card";

const POLL_MS = 1_000;
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);

interface Props {
  source: string;
  slot: string | null;
  needed: boolean;
  onDone: () => void;
}

export function SignIn({ source, slot, needed, onDone }: Props) {
  const [state, setState] = useState<SignInState | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const [client, setClient] = useState("");
  const id = useId();
  const path = `/v1/sources/${encodeURIComponent(source)}/sign-in`;
  useEffect(() => {
    const stop = new AbortController();
    void get<SignInState>(path, { signal: stop.signal }).then((found) => found.state === "waiting" && setState(found)).catch(() => undefined);
    return () => stop.abort();
  }, [path]);
  useFollowed(path, state?.state === "waiting", (found) => {
    setState(found);
    if (found.state === "done") onDone();
  });
  const ask = async (digest: string | null) => {
    setBusy(true);
    setError(null);
    try {
      setState(await post<SignInState>(path, { ...(slot ? { slot } : {}), ...(digest ? { digest, ...(client.trim() ? { client_id: client.trim() } : {}) } : {}) }));
    } catch (failure) {
      setError(asApiError(failure));
    }
    setBusy(false);
  };
  return (
    <div className="sign-in-box">
      {!state && !error && <button className={needed ? "primary" : ""} disabled={busy} onClick={() => void ask(null)}>{busy ? "Looking…" : needed ? "Sign in…" : "Sign in to an account…"}</button>}
      {error && <><Problem error={error} retry={() => void ask(null)} /><p className="small quiet">Or sign in from a terminal of this server:</p><Command text={`gloveport auth login ${source}`} /></>}
      {state?.state === "found" && (
        <div className="note" role="status">
          <p><strong><Visible text={(state.question ?? "").replace(/ Go on\?$/, "")} limit={600} /></strong></p>
          <p>Go on only if you know this server: it will ask for your account.</p>
          <p className="small">
            <label htmlFor={id}>Client id, if you have registered a client there</label>{" "}
            <input id={id} className="mono" spellCheck={false} autoComplete="off" maxLength={500} value={client} onChange={(event) => setClient(event.target.value)} />
          </p>
          <div className="actions">
            <button className="primary" disabled={busy} onClick={() => void ask(state.digest)}>{busy ? "Starting…" : "Go on"}</button>
            <button disabled={busy} onClick={() => setState(null)}>Cancel</button>
          </div>
        </div>
      )}
      {state?.state === "waiting" && state.url && <Waiting url={state.url} source={source} />}
      {state?.state === "done" && <p role="status"><strong>✓ You are signed in.</strong> <span className="quiet small">The tokens are sent to this source and nowhere else.</span></p>}
      {state?.state === "failed" && (
        <div className="source-problem" role="alert">
          <p><Visible text={state.problem ?? "the sign-in failed"} limit={500} /></p>
          {state.hint && <p className="quiet small"><Visible text={state.hint} limit={300} /></p>}
          <div className="actions"><button onClick={() => void ask(null)}>Try again</button></div>
          <Command text={state.command} />
        </div>
      )}
    </div>
  );
}

function Waiting({ url, source }: { url: string; source: string }) {
  return (
    <div className="note" role="status">
      <p><strong>Open this link to sign in.</strong> This page goes on when you have.</p>
      <div className="actions">
        {isWebLink(url) && <a className="button primary-link" href={url} target="_blank" rel="noopener noreferrer">Open the sign-in page</a>}
        <Copy text={url} label="Copy the link" />
      </div>
      {!LOOPBACK.has(location.hostname) && (
        <p className="small">The answer comes to the machine of the server. If this browser runs elsewhere, use <code>gloveport auth login {source} --device</code> there.</p>
      )}
    </div>
  );
}

/** Whether a link goes where a sign-in may: the server has checked it, and nothing else becomes a link here. */
function isWebLink(url: string): boolean {
  const parts = URL.canParse(url) ? new URL(url) : null;
  return parts !== null && (parts.protocol === "https:" || (parts.protocol === "http:" && LOOPBACK.has(parts.hostname)));
}

function useFollowed(path: string, waits: boolean, onState: (state: SignInState) => void): void {
  const latest = useRef(onState);
  latest.current = onState;
  useEffect(() => {
    if (!waits) return;
    const stop = new AbortController();
    const timer = setInterval(() => {
      void get<SignInState>(path, { signal: stop.signal }).then((found) => latest.current(found)).catch(() => undefined);
    }, POLL_MS);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [path, waits]);
}
