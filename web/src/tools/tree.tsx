// The tools as a tree of names. A namespace is loaded when somebody opens it: a catalog may have ten thousand tools.
import { useState } from "react";
import { get } from "../api";
import { useLoaded } from "../shell/loaded";
import { Link } from "../shell/router";
import { Empty, Problem } from "../shell/states";
import { Visible, visibleText } from "../shell/visible";
import type { Namespace, Page } from "../types";

const POLL_MS = 5_000; // sources are opened while the server runs, and some take a while

interface Names extends Page {
  names: Namespace[];
  total: number;
}

export function Tree({ below, chosen }: { below: string; chosen: string }) {
  const root = useNames(below);
  const total = root.names.reduce((sum, one) => sum + one.tools, 0);
  if (root.error) return <Problem error={root.error} retry={root.reload} />;
  if (root.loading) return <p className="quiet small tools-count">Loading…</p>;
  if (total === 0)
    return <Empty title="No tools yet"><p><Link href="/sources">Add a source</Link>, and its tools appear here.</p></Empty>;
  return (
    <>
      <p className="quiet small tools-count">{total.toLocaleString("en")} {total === 1 ? "tool" : "tools"}</p>
      <ul className="tree"><Rows names={root.names} chosen={chosen} /><More {...root} /></ul>
    </>
  );
}

function Rows({ names, chosen }: { names: Namespace[]; chosen: string }) {
  return names.map((one) => (
    <li key={one.path}>
      {one.is_tool && <ToolLink name={one} chosen={chosen} />}
      {(!one.is_tool || one.tools > 1) && <Branch name={one} chosen={chosen} />}
    </li>
  ));
}

function ToolLink({ name, chosen }: { name: Namespace; chosen: string }) {
  return (
    <Link data-row className="tree-row tree-tool" href={`/tools/${encodeURIComponent(name.path)}`} aria-current={chosen === name.path ? "true" : undefined} title={visibleText(name.path).slice(0, 300)}>
      <span className="tree-name"><Visible text={name.name} limit={200} /></span>
    </Link>
  );
}

function Branch({ name, chosen }: { name: Namespace; chosen: string }) {
  const [isOpen, setOpen] = useState(chosen.startsWith(`${name.path}.`));
  return (
    <>
      <button type="button" data-row className="tree-row tree-branch" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} title={visibleText(name.path).slice(0, 300)}>
        <span className="tree-sign" aria-hidden="true">{isOpen ? "▾" : "▸"}</span>
        <span className="tree-name"><Visible text={name.name} limit={200} /></span>
        <span className="quiet tree-count">{name.tools.toLocaleString("en")}</span>
      </button>
      {isOpen && <ul><Below path={name.path} chosen={chosen} /></ul>}
    </>
  );
}

function Below({ path, chosen }: { path: string; chosen: string }) {
  const below = useNames(path);
  if (below.error) return <li><Problem error={below.error} retry={below.reload} /></li>;
  return <><Rows names={below.names} chosen={chosen} /><More {...below} /></>;
}

function More({ names, total, next, more }: ReturnType<typeof useNames>) {
  if (next === null) return null;
  return <li><button type="button" data-row className="more" onClick={more}>show more: {(total - names.length).toLocaleString("en")} left</button></li>;
}

/** The names below a namespace: the first page, and further ones when somebody asks. */
function useNames(below: string) {
  const load = (cursor: string, signal?: AbortSignal) => get<Names>("/v1/namespaces", { query: { below, cursor }, ...(signal ? { signal } : {}) });
  const first = useLoaded(`names ${below}`, (signal) => load("", signal), POLL_MS);
  const [rest, setRest] = useState<Names[]>([]);
  const pages = first.data ? [first.data, ...rest] : [];
  const next = pages.at(-1)?.next ?? null;
  return {
    names: pages.flatMap((page) => page.names),
    total: first.data?.total ?? 0,
    next,
    more: () => void (next && load(next).then((page) => setRest((old) => [...old, page]))),
    error: first.error,
    loading: first.loading,
    reload: first.reload,
  };
}
