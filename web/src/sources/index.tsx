// The sources: what is connected and how it is, adding and removing, signing in, and how clients connect to this server.
import { useState } from "react";
import { get } from "../api";
import { useLoaded } from "../shell/loaded";
import { Link, pathArgument, usePath, useQuery } from "../shell/router";
import { Screen } from "../shell/screen";
import { isAdmin, isApprover, useMe } from "../shell/session";
import { Empty, Loading, Problem } from "../shell/states";
import type { SourceRow } from "../types";
import { AddSource } from "./add-source";
import { ConnectClient } from "./connect-client";
import { SourceCard } from "./source-card";
import "./sources.css";

const POLL_MS = 4_000;
const ORDER = ["broken", "untrusted", "opening", "open"];

export default function Sources() {
  const me = useMe();
  const [query] = useQuery();
  const chosen = pathArgument(usePath(), "/sources/").replace(/^\/sources$/, "");
  const view = query.get("view") ?? "sources";
  const found = useLoaded("sources", async (signal) => (await get<{ sources: SourceRow[] }>("/v1/sources", { signal })).sources, POLL_MS);
  const [search, setSearch] = useState("");
  // A port always has the source `local`, for functions that a program of its host gives it.
  const shown = found.data?.filter((row) => row.tools > 0 || row.name !== "local");
  const rows = sorted(shown ?? []).filter((row) => matches(row, search));
  return (
    <Screen title="Sources" windowTitle={chosen || "Sources"}>
      {isApprover(me) && (
        <nav className="tabs sources-tabs" aria-label="What to show">
          <Link href="/sources" aria-current={view === "sources" ? "page" : undefined}>Connected</Link>
          <Link href="/sources?view=clients" aria-current={view === "clients" ? "page" : undefined}>Connect a client</Link>
        </nav>
      )}
      {view === "clients" && isApprover(me) ? (
        <ConnectClient />
      ) : (
        <>
          {isAdmin(me) && <AddSource onAdded={found.reload} />}
          {found.error && <Problem error={found.error} retry={found.reload} />}
          {found.loading && <Loading />}
          {(shown?.length ?? 0) > 8 && (
            <div className="filters">
              <input type="search" data-search aria-label="Search the sources" placeholder="Search by name, kind or place   /" value={search} onChange={(event) => setSearch(event.target.value)} />
            </div>
          )}
          {found.data && rows.length === 0 && (
            <Empty title={search ? "No source fits" : "No sources yet"}>
              {search ? "None has these words in its name, kind or place." : "Paste the URL of an API or of an MCP server above, and its tools are there for programs."}
            </Empty>
          )}
          <div className="sources">
            {rows.map((row) => <SourceCard key={row.name} row={row} isChosen={row.name === chosen} reload={found.reload} />)}
          </div>
        </>
      )}
    </Screen>
  );
}

const sorted = (rows: SourceRow[]) => [...rows].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || a.name.localeCompare(b.name));

function matches(row: SourceRow, search: string): boolean {
  const wanted = search.trim().toLowerCase();
  return !wanted || [row.name, row.kind ?? "", row.location ?? "", row.state].some((text) => text.toLowerCase().includes(wanted));
}
