// How MCP clients reach this server: the exact text for the file of each, with the token by reference to the environment.
import { useState } from "react";
import { get } from "../api";
import { Copy } from "../shell/copy";
import { useLoaded } from "../shell/loaded";
import { useQuery } from "../shell/router";
import { Loading, Problem } from "../shell/states";
import { Visible } from "../shell/visible";
import type { ClientRow } from "../types";
import { Command } from "./source-card";

interface Found {
  clients: ClientRow[];
  variable: string;
  export: string | null;
  url: string;
}

export function ConnectClient() {
  const [query, change] = useQuery();
  const found = useLoaded("clients", (signal) => get<Found>("/v1/clients", { query: { origin: location.origin }, signal }));
  const [transport, setTransport] = useState<"http" | "stdio">("http");
  if (found.error) return <Problem error={found.error} retry={found.reload} />;
  if (!found.data) return <Loading />;
  const chosen = found.data.clients.find((one) => one.client === query.get("client")) ?? found.data.clients[0];
  if (!chosen) return null;
  const form = chosen[transport];
  return (
    <section className="connect" aria-label="Connect a client">
      <p>An agent in one of these clients gets three tools, <code>search</code>, <code>describe</code> and <code>execute</code>, however many tools you have.</p>
      <div className="tabs" role="tablist" aria-label="Client">
        {found.data.clients.map((one) => (
          <button key={one.client} role="tab" aria-selected={one === chosen} onClick={() => change({ client: one.client })}>{one.title}</button>
        ))}
      </div>
      <div className="card connect-card" role="tabpanel">
        <div className="choices" role="group" aria-label="How it connects">
          <button aria-pressed={transport === "http"} onClick={() => setTransport("http")}>To this server</button>
          <button aria-pressed={transport === "stdio"} onClick={() => setTransport("stdio")}>Starts its own</button>
        </div>
        <p className="quiet small">{transport === "http" ? "Its runs and approvals appear in these pages, with the tools of this server." : "The client starts `gloveport mcp`, with the sources of your settings. It needs no token, and the approvals appear here too."}</p>
        {form.snippet === null ? (
          <div className="note"><p><Visible text={form.problem ?? ""} limit={400} /></p>{form.hint && <p className="small"><Visible text={form.hint} limit={400} /></p>}</div>
        ) : (
          <Snippet title="Put this into" file={chosen.files.user} or={chosen.files.project} text={form.snippet} />
        )}
        {transport === "http" && form.snippet !== null && (
          <>
            <h2>Where the client starts, set <code>{found.data.variable}</code></h2>
            {found.data.export && <Command text={found.data.export} />}
            <p className="small quiet">That is the token of the agent <code>default</code>. Give each client an agent of its own with <code>gloveport agents add NAME</code>: its rules, runs and tools are then apart.</p>
          </>
        )}
        <h2>Or let the command line do it</h2>
        <Command text={transport === "http" && form.snippet !== null ? chosen.command : `gloveport connect ${chosen.client}`} />
        <p className="small quiet">Then: <Visible text={chosen.reload} limit={200} />.</p>
      </div>
    </section>
  );
}

function Snippet({ title, file, or, text }: { title: string; file: string; or: string; text: string }) {
  return (
    <div className="snippet">
      <header className="small"><span>{title} <code><Visible text={file} limit={200} /></code> <span className="quiet">or, for one project, <code>{or}</code></span></span><Copy text={text} /></header>
      <pre tabIndex={0} aria-label="The configuration"><Visible text={text} limit={8_000} /></pre>
    </div>
  );
}
