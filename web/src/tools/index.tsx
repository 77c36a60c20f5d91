// The tools: a search and a tree on the left, one tool on the right. What is searched for and what is shown stand in the address.
import { useEffect, useState } from "react";
import { endpointUrl, get } from "../api";
import { useLoaded } from "../shell/loaded";
import { Link, pathArgument, usePath, useQuery } from "../shell/router";
import { Screen } from "../shell/screen";
import { isApprover, useMe } from "../shell/session";
import { Empty } from "../shell/states";
import { Visible } from "../shell/visible";
import type { SourceChange } from "../types";
import { Changes } from "./changes";
import { SearchResults } from "./search-results";
import { ToolScreen } from "./tool";
import { Tree } from "./tree";
import { moveFocus } from "./rows";
import "./tools.css";

export default function Tools() {
  const me = useMe();
  const chosen = pathArgument(usePath(), "/tools/").replace(/^\/tools$/, "");
  const [query, change] = useQuery();
  const [search, setSearch] = useSearch(query.get("q") ?? "", (q) => change({ q }));
  const view = query.get("view");
  const source = query.get("source") ?? "";
  const changes = useLoaded(
    "changes",
    async (signal) => (isApprover(me) ? (await get<{ changes: SourceChange[] }>("/v1/changes", { signal })).changes : []),
    15_000,
  );
  const changed = changes.data?.reduce((sum, one) => sum + one.tools.length, 0) ?? 0;
  return (
    <Screen title="Tools" windowTitle={chosen || "Tools"} wide>
      {changed > 0 && view !== "changes" && (
        <p className="note changed-note" role="status">
          <strong>{changed} {changed === 1 ? "tool has" : "tools have"} changed</strong> since somebody accepted the definition, and can't be called until somebody accepts it again.{" "}
          <Link href="/tools?view=changes">Look at the changes</Link>
        </p>
      )}
      <div className={chosen || view ? "tools-columns has-choice" : "tools-columns"}>
        <nav className="tools-list" aria-label="All tools" onKeyDown={moveFocus}>
          <input
            type="search"
            data-search
            data-row
            aria-label="Search the tools"
            placeholder="What should the tool do?   /"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
          {source && (
            <p className="small in-source">
              <span>in <code><Visible text={source} limit={60} /></code></span>
              <button type="button" className="plain" onClick={() => change({ source: null })}>Show all sources</button>
            </p>
          )}
          {search.trim() ? <SearchResults search={search} source={source} chosen={chosen} /> : <Tree key={source} below={source} chosen={chosen} />}
        </nav>
        <div className="tools-choice">
          {(chosen || view) && <p className="back"><Link href={endpointUrl("/tools", { q: search, source })}>← All tools</Link></p>}
          {view === "changes" && !chosen ? (
            <Changes changes={changes} />
          ) : chosen ? (
            <ToolScreen key={chosen} path={chosen} changes={changes} />
          ) : (
            <div className="tools-hint">
              <Empty title="Choose a tool">
                <p>Its types, the rule that applies to it, and a form to call it appear here.</p>
                <p><kbd>/</kbd> searches, <kbd>↓</kbd> and <kbd>↑</kbd> go through the list, <kbd>Enter</kbd> opens.</p>
              </Empty>
            </div>
          )}
        </div>
      </div>
    </Screen>
  );
}

/** The text of the search: the field follows the keys at once, the address after a moment. */
function useSearch(inAddress: string, change: (search: string) => void): [string, (search: string) => void] {
  const [text, setText] = useState(inAddress);
  useEffect(() => {
    if (text === inAddress) return;
    const timer = setTimeout(() => change(text), 250);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => setText(inAddress), [inAddress]);
  return [text, setText];
}
