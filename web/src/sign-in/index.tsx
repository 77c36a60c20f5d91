// Signs in with the one-time code that the link of `gloveport open` brings in its fragment, which no server log sees.
import { useEffect, useState } from "react";
import { ApiError, asApiError } from "../api";
import { Copy } from "../shell/copy";
import { signIn } from "../shell/session";
import { Problem } from "../shell/states";

export function SignIn() {
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(() => codeInAddress() !== "");
  const enter = async (code: string) => {
    setBusy(true);
    setError(null);
    try {
      await signIn(code);
      location.replace(location.pathname === "/sign-in" ? "/runs" : location.pathname + location.search);
    } catch (failure) {
      setError(asApiError(failure));
      setBusy(false);
    }
  };
  useEffect(() => {
    document.title = "Sign in · Gloveport";
    const code = codeInAddress();
    if (!code) return;
    history.replaceState(null, "", location.pathname); // the code counts once, and should not stay in the history
    void enter(code);
  }, []);
  if (busy) return <main className="sign-in"><p className="loading quiet" role="status">Signing in…</p></main>;
  return (
    <main className="sign-in">
      <h1>Sign in to Gloveport</h1>
      {error && <Problem error={error} />}
      <p>A link signs you in once. This command opens a new one, on the machine that serves:</p>
      <p className="command"><code>gloveport open</code> <Copy text="gloveport open" /></p>
      <form onSubmit={(event) => {
        event.preventDefault();
        const code = new FormData(event.currentTarget).get("code");
        if (typeof code === "string" && code.trim()) void enter(code.trim().replace(/^.*#(code=)?/, ""));
      }}>
        <label htmlFor="code">Or paste the link or its code</label>
        <div className="field-row">
          <input id="code" name="code" autoComplete="off" spellCheck={false} />
          <button className="primary">Sign in</button>
        </div>
      </form>
    </main>
  );
}

function codeInAddress(): string {
  return location.hash.slice(1).replace(/^code=/, "");
}
