// What a search finds, as somebody types: the best first.
import { endpointUrl, post } from "../api";
import { useDelayed, useLoaded } from "../shell/loaded";
import { Link } from "../shell/router";
import { Problem } from "../shell/states";
import { Visible, visibleText } from "../shell/visible";
import type { FoundTool } from "../types";

const MAX_RESULTS = 50;

interface Found {
  tools: FoundTool[];
  total: number;
}

export function SearchResults({ search, source, chosen }: { search: string; source: string; chosen: string }) {
  const query = useDelayed(search.trim(), 80);
  const asked = { query: query.slice(0, 500), limit: MAX_RESULTS, ...(source ? { source } : {}) };
  const found = useLoaded(`search ${source} ${query}`, (signal) => post<Found>("/v1/search", asked, { signal }));
  if (found.error) return <Problem error={found.error} retry={found.reload} />;
  if (!found.data) return <p className="quiet small tools-count">Searching…</p>;
  const { tools, total } = found.data;
  return (
    <>
      <p className="quiet small tools-count" role="status">
        {tools.length === 0 ? "No tool fits. Try other words." : tools.length < total ? `The best ${tools.length} of ${total.toLocaleString("en")}` : `${total} found`}
      </p>
      <ul className="tool-results">
        {tools.map((tool) => (
          <li key={tool.path}>
            <Link data-row className="tool-result" href={endpointUrl(`/tools/${encodeURIComponent(tool.path)}`, { q: search, source })} aria-current={tool.path === chosen ? "true" : undefined} title={visibleText(tool.path).slice(0, 300)}>
              <span className="tool-name"><Visible text={tool.path.slice(0, 300)} /></span>
              {tool.writes && <span className="tag">writes</span>}
              <span className="tool-about quiet"><Visible text={firstLine(tool.description)} /></span>
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

const firstLine = (text: string) => (text.split("\n", 1)[0] ?? "").slice(0, 160);
