// The list of runs: the latest first, with live statuses, filters that stand in the address, and a search in what is loaded.
import { Badge } from "../shell/badge";
import { navigate, useQuery } from "../shell/router";
import { Screen } from "../shell/screen";
import { Empty, Loading, Problem } from "../shell/states";
import { Table, type Column } from "../shell/table";
import { Ago, duration, useNow } from "../shell/time";
import { Visible, visibleText } from "../shell/visible";
import type { Run } from "../types";
import { useRuns, type RunFilters } from "./use-runs";
import "./runs.css";

const STATUSES = ["running", "waiting", "completed", "failed", "cancelled"];

const COLUMNS: Column<Run>[] = [
  { name: "Run", render: (run) => <code>{shortId(run.run)}</code>, className: "run-id" },
  { name: "Status", render: (run) => <Badge status={run.status} />, className: "run-status" },
  { name: "Program", render: (run) => <Program run={run} />, className: "run-program" },
  { name: "Agent", render: (run) => <Visible text={run.agent} /> },
  { name: "Language", render: (run) => <span className="quiet">{run.language}</span> },
  { name: "Calls", render: (run) => run.calls.toLocaleString("en"), className: "number calls" },
  { name: "Time", render: (run) => <Took run={run} />, className: "number" },
  { name: "Started", render: (run) => <Ago time={run.started} />, className: "number quiet" },
];

export default function Runs() {
  const [query, change] = useQuery();
  const filters: Omit<RunFilters, "search"> = { status: query.get("status") ?? "", tool: query.get("tool") ?? "", agent: query.get("agent") ?? "" };
  const search = query.get("search") ?? "";
  const { runs: shown, error, loading, more, loadMore, reload } = useRuns({ ...filters, search: search.trim() });
  const isFiltered = Boolean(search || filters.status || filters.tool || filters.agent);
  return (
    <Screen title="Runs">
      <Filters filters={filters} search={search} change={change} first={shown[0]} />
      {error && <Problem error={error} retry={reload} />}
      {shown.length > 0 ? (
        <Table caption="Runs, the latest first" columns={COLUMNS} rows={shown} keyOf={(run) => run.run} hrefOf={(run) => `/runs/${run.run}`} />
      ) : loading ? (
        <Loading />
      ) : (
        !error && <NoRuns isFiltered={isFiltered} clear={() => navigate("/runs")} />
      )}
      {more && <p className="load-more"><button onClick={loadMore}>Load more</button></p>}
    </Screen>
  );
}

interface FiltersProps {
  filters: Omit<RunFilters, "search">;
  search: string;
  change: (change: Record<string, string | null>) => void;
  first: Run | undefined;
}

function Filters({ filters, search, change, first }: FiltersProps) {
  const open = () => {
    if (search && first) navigate(`/runs/${first.run}`);
  };
  return (
    <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        data-search
        aria-label="Search the runs"
        placeholder="Search by id, agent or error   /"
        value={search}
        onChange={(event) => change({ search: event.target.value })}
        onKeyDown={(event) => event.key === "Enter" && open()}
      />
      <div className="choices" role="group" aria-label="Status">
        {["", ...STATUSES].map((status) => (
          <button key={status} type="button" aria-pressed={filters.status === status} onClick={() => change({ status })}>
            {{ "": "All", waiting: "Needs you" }[status] ?? status}
          </button>
        ))}
      </div>
      <input className="narrow" aria-label="Agent" placeholder="Agent" size={10} value={filters.agent} onChange={(event) => change({ agent: event.target.value })} />
      <input className="narrow" aria-label="Tool" placeholder="Tool, such as shop.*" size={18} value={filters.tool} onChange={(event) => change({ tool: event.target.value })} />
    </form>
  );
}

function NoRuns({ isFiltered, clear }: { isFiltered: boolean; clear: () => void }) {
  if (isFiltered)
    return <Empty title="No run fits"><p>None has all of this.</p><p><button onClick={clear}>Show all runs</button></p></Empty>;
  return (
    <Empty title="No runs yet">
      <p>A run appears here as soon as an agent starts one. Try one from a terminal, or in the playground:</p>
      <p><code>gloveport run -e '1 + 1'</code></p>
    </Empty>
  );
}

/** What the program begins with, and why it failed. */
function Program({ run }: { run: Run }) {
  const problem = run.error ?? run.obstacle;
  return (
    <>
      <span className="run-title"><Visible text={run.title || "–"} limit={160} inButton /></span>
      {problem && <span className="run-error"><Visible text={problem} limit={160} inButton /></span>}
    </>
  );
}

const shortId = (id: string) => visibleText(id.length > 20 ? id.slice(0, 8) : id);

function Took({ run }: { run: Run }) {
  if (run.seconds !== null) return duration(run.seconds);
  return run.status === "running" ? <Running since={run.started} /> : <span className="quiet">–</span>;
}

function Running({ since }: { since: string }) {
  return duration(Math.max(0, (useNow(500) - Date.parse(since)) / 1000));
}
